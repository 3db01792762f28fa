// The page: an example, a scene, and an agent that does the example's task in its own scene.

import { hideAnalysis, showAnalysis } from "./analysis.js";
import { fetchJson, fetchLines, latest, RequestError, Unreachable } from "./api.js";
import { choices, readUrl, taskRequest, writeUrl } from "./choices.js";
import { EpisodePlayer } from "./episode.js";
import { connectForms, showChoices, useDatasetTask } from "./forms.js";
import { TaskMap } from "./map.js";
import { sentence, showNotice, watchStatus } from "./status.js";

const $ = (id) => document.getElementById(id);
const player = new EpisodePlayer();
const map = new TaskMap(useTask);
let scene = null; // the server's description of the scene
let current = null; // the same with the current task
let mapStatus = null;
let episode = null; // aborts the running episode

// ---- choosing a task -----------------------------------------------------------------------------------------

const DEBOUNCE_MS = 120; // a newer choice, or a slider's next position, within this time replaces the older one

function changed(newScene) {
  if (newScene) scene = null;
  stop();
  writeUrl();
  showChoices(scene, null);
  refresh().catch(showError);
}

const refresh = latest(async (signal) => {
  document.body.classList.add("busy");
  $("run").disabled = true; // at once: the page no longer shows the chosen task
  try {
    await new Promise((resume) => setTimeout(resume, DEBOUNCE_MS));
    if (!scene) {
      scene = await fetchJson("/api/scene", choices.scene, signal);
      player.reset(scene.image);
      showChoices(scene, null);
    }
    const task = await fetchJson("/api/task", taskRequest(), signal);
    current = task.scene;
    showTask(task);
    await analyse(current.task, signal);
  } finally {
    if (!signal.aborted) document.body.classList.remove("busy");
  }
});

function showTask(task) {
  $("example-error").hidden = true;
  player.reset(scene.image);
  const byGoal = choices.by === "goal";
  $("before").src = task.before_image;
  $("after").src = task.after_image;
  $("before-caption").textContent = byGoal ? "current state" : "before";
  $("after-caption").textContent = byGoal ? "goal image" : "after";
  for (const id of ["before", "after"]) $(id).parentElement.classList.toggle("pixels", choices.by === "dataset");
  $("example-title").textContent = byGoal ? "Goal image" : "Example (before → after)";
  $("example-label").textContent = task.label;
  $("scene-label").textContent = current.solved ? "already done: keep it so" : current.label;
  showOutcome("Press “Run” to watch the agent.");
  setRunButton("Run", false);
  showChoices(scene, current);
  $("run").disabled = false;
}

async function analyse(task, signal) {
  map.ring([]);
  if (!mapStatus || !["embedded", "ready"].includes(mapStatus.state)) {
    hideAnalysis(mapStatus ? sentence(mapStatus.detail) : "");
    return;
  }
  try {
    const analysis = await fetchJson("/api/analysis", taskRequest(), signal);
    showAnalysis(analysis, task, useTask);
    map.ring(analysis.neighbours.map((neighbour) => neighbour.index));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    hideAnalysis(sentence(error.message)); // the agent can be run all the same
  }
}

function useTask(index) {
  useDatasetTask(index);
  changed(false);
  $("example-title").scrollIntoView({ block: "nearest" });
}

function showError(error) {
  if (error instanceof Unreachable) return; // watchStatus shows it
  if (!scene) {
    showNotice(sentence(error.message), "bad");
    return;
  }
  $("example-error").textContent = sentence(error.message);
  $("example-error").hidden = false;
  $("run").disabled = true;
}

// ---- running an episode --------------------------------------------------------------------------------------

function stop() {
  episode?.abort();
  episode = null;
}

async function runOrStop() {
  if (episode) {
    stop();
    showOutcome(`Stopped at step ${Math.max(0, player.steps.length - 1)}.`);
    return;
  }
  const mine = (episode = new AbortController());
  setRunButton("Stop", true);
  showOutcome("Starting the episode …");
  try {
    for await (const event of fetchLines("/api/episode", taskRequest(), mine.signal)) onEvent(event);
  } catch (error) {
    if (!mine.signal.aborted) showOutcome(sentence(error.message), "failure");
  } finally {
    player.enable();
    if (episode === mine) episode = null;
    if (!episode) setRunButton(player.steps.length ? "Run again" : "Run", false);
  }
}

function onEvent(event) {
  if (event.type === "waiting") showOutcome("All simulators are in use; your episode starts in a moment.");
  if (event.type === "start") {
    player.start(event);
    showOutcome("Running …");
  }
  if (event.type === "step") player.add(event);
  if (event.type === "error") showOutcome(sentence(event.detail), "failure");
  if (event.type === "end") {
    player.end(event);
    player.onEnd = () => {
      player.onEnd = null;
      showResult(event);
    };
    if (!player.playing) player.onEnd(); // the visitor is looking at another step
  }
}

function showResult(event) {
  const { success_step: step, success_at_end: atEnd, declared_step: declared, expert_success_step: expertStep } = event;
  const expert = expertStep === null ? "" : ` The expert needs ${expertStep} steps.`;
  const right = event.declared_success ? "rightly" : "wrongly";
  const says = declared === null ? " The agent never declares it done." : ` The agent ${right} declares it done at step ${declared}.`;
  if (step === null) showOutcome(`No success in ${player.steps.length - 1} steps.${says}${expert}`, "failure");
  else if (atEnd) showOutcome(`Success at step ${step}, kept until the end.${says}${expert}`, "success");
  else showOutcome(`Success at step ${step}, but lost again by the end.${says}${expert}`, "success");
}

function showOutcome(text, level = "") {
  $("outcome").textContent = text;
  $("outcome").className = `outcome ${level}`;
}

function setRunButton(text, running) {
  $("run").textContent = text;
  $("run").classList.toggle("running", running);
}

// ---- the run and its map -------------------------------------------------------------------------------------

function onReady(status) {
  if (status.unavailable) return;
  $("explorer").hidden = false;
  connectForms(status.tasks, status.supports_analogy, changed);
  if (!status.tasks.includes(choices.task)) choices.task = null;
  if (!location.hash) choices.scene.video = choices.video = status.video; // as in training
  if (!status.supports_analogy) showNotice(`${status.method} cannot be conditioned on an example; give it a goal image instead.`);
  showChoices(null, null);
  refresh().catch(showError);
}

async function onMap(status) {
  const before = mapStatus?.state;
  mapStatus = status;
  const ready = status.state === "ready";
  const percent = status.progress > 0 && status.progress < 1 ? ` (${Math.round(100 * status.progress)} %)` : "";
  $("map-status").textContent = ready ? "" : sentence(status.detail) + percent;
  $("map-body").hidden = $("color-by").hidden = !ready;
  if (status.state === before) return;
  if (current && before !== "embedded") await analyse(current.task).catch(showError);
  if (ready) map.load(await fetchJson("/api/map"));
}

readUrl();
$("example-details").open = matchMedia("(min-width: 881px)").matches; // on a phone the images come first
$("run").addEventListener("click", runOrStop);
addEventListener("hashchange", () => {
  readUrl();
  if (!$("explorer").hidden) changed(true); // before the agent is loaded, onReady takes the new choices
});
watchStatus(onReady, onMap);
