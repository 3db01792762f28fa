// The page: an example, a scene, and an agent that does the example's task in its own scene.

import { hideAnalysis, showAnalysis } from "./analysis.js";
import { fetchBlob, fetchJson, fetchLines, latest, RequestError, Unreachable } from "./api.js";
import { choices, followScene, readUrl, taskRequest, writeUrl } from "./choices.js";
import { EpisodePlayer } from "./episode.js";
import { connectForms, missingPictures, showChoices, useDatasetTask } from "./forms.js";
import { ManyScenes, showManyBy } from "./many.js";
import { TaskMap } from "./map.js";
import { sentence, showNotice, watchStatus } from "./status.js";

const $ = (id) => document.getElementById(id);
const player = new EpisodePlayer();
const map = new TaskMap(useTask);
let scene = null; // the server's description of the scene
let current = null; // the same with the current task
let names = []; // of the runs
let many = null; // success over many scenes
let mapStatus = null;
let episode = null; // aborts the running episode

// ---- choosing a task -----------------------------------------------------------------------------------------

const DEBOUNCE_MS = 120; // a newer choice, or a slider's next position, within this time replaces the older one

function changed(newScene) {
  if (newScene) scene = null;
  stop();
  writeUrl();
  showChoices(scene, null);
  showManyBy();
  $("many").disabled = false;
  refresh().catch(showError);
}

// The value of a control is not valid, so there is no task to run.
function refuse(text) {
  stop();
  refresh.abort();
  document.body.classList.remove("busy");
  $("example-error").textContent = text;
  $("example-error").hidden = false;
  $("run").disabled = $("film").disabled = true;
  $("many").disabled = !many.running; // a running count can still be stopped
  showOutcome(text, "failure");
}

const refresh = latest(async (signal, delay = DEBOUNCE_MS) => {
  document.body.classList.add("busy");
  $("run").disabled = true; // at once: the page no longer shows the chosen task
  try {
    await new Promise((resume) => setTimeout(resume, delay));
    if (signal.aborted) return;
    if (!scene) {
      scene = await fetchJson("/api/scene", choices.scene, signal);
      player.reset(scene.image);
      showChoices(scene, null);
    }
    const missing = missingPictures();
    if (missing) return showMissing(missing);
    const task = await fetchJson("/api/task", taskRequest(), signal);
    current = task.scene;
    showTask(task);
    await analyse(current.task, signal);
  } finally {
    if (!signal.aborted) document.body.classList.remove("busy");
  }
});

function showMissing(text) {
  for (const part of ["before", "after"]) {
    const png = choices.pictures[part];
    if (png) $(part).src = `data:image/png;base64,${png}`;
    else $(part).removeAttribute("src");
    $(part).parentElement.classList.add("pixels");
  }
  $("example-error").hidden = true;
  $("example-label").textContent = "your pictures";
  hideAnalysis("");
  showOutcome(text);
}

function showTask(task) {
  $("example-error").hidden = true;
  player.reset(scene.image);
  const byGoal = choices.by === "goal";
  $("before").src = task.before_image;
  $("after").src = task.after_image;
  $("before-caption").textContent = byGoal ? "current state" : "before";
  $("after-caption").textContent = byGoal ? "goal image" : "after";
  for (const id of ["before", "after"]) $(id).parentElement.classList.toggle("pixels", ["dataset", "pictures"].includes(choices.by));
  $("example-title").textContent = byGoal ? "Goal image" : "Example (before → after)";
  $("example-label").textContent = task.label;
  $("scene-label").textContent = current.solved ? "already done: it has to stay so" : current.label;
  showOutcome("Press “Run” to watch the agent.");
  setRunButton("Run", false);
  showChoices(scene, current);
  $("run").disabled = false;
}

async function analyse(task, signal) {
  map.ring([]);
  if (!mapStatus || !["embedded", "ready"].includes(mapStatus.state)) {
    hideAnalysis(mapStatus ? unavailable(mapStatus) : "");
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

const unavailable = ({ state, detail }) => (state === "unavailable" ? "Nearest tasks, inferred goal and map are not available: " + detail + "." : sentence(detail));

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
  const expertStep = event.expert_success_step;
  const expert = expertStep === null ? "" : `The expert needs ${expertStep} steps.`;
  const results = event.agents.map(resultOf);
  const texts = results.length > 1 ? results.map((text, number) => `${names[number]}: ${text}`) : results;
  const success = event.agents.some((agent) => agent.success_step !== null);
  showOutcome([...texts, expert].join(texts.length > 1 ? "\n" : " "), success ? "success" : "failure");
}

function resultOf({ success_step: step, success_at_end: atEnd, declared_step: declared, declared_success: right }) {
  const says = declared === null ? "The agent never declares it done." : `The agent ${right ? "rightly" : "wrongly"} declares it done at step ${declared}.`;
  if (step === null) return `No success in ${player.steps.length - 1} steps. ${says}`;
  return `Success at step ${step}, ${atEnd ? "kept until the end" : "but lost again by the end"}. ${says}`;
}

async function downloadFilm() {
  const said = [$("outcome").textContent, $("outcome").className];
  $("film").disabled = true;
  showOutcome("Making the film …");
  try {
    const url = URL.createObjectURL(await fetchBlob("/api/film", taskRequest()));
    Object.assign(document.createElement("a"), { href: url, download: `gcb-scene-${choices.scene.seed}.mp4` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    [$("outcome").textContent, $("outcome").className] = said;
  } catch (error) {
    showOutcome(sentence(error.message), "failure");
  } finally {
    $("film").disabled = !player.outcomes.length; // the task may have changed in the meantime
  }
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
  connectForms(status, changed, refuse);
  showRuns(status.runs.map((run) => run.run));
  if (!status.tasks.includes(choices.task)) choices.task = null;
  if (!location.hash) choices.scene.video = choices.video = status.video; // as in training
  if (!status.supports_analogy) showNotice(`${status.without_analogy} cannot be conditioned on an example; give it a goal image instead.`);
  showChoices(null, null);
  showManyBy();
  refresh(0).catch(showError);
}

// Two runs have a tile and a timeline each.
function showRuns(runs) {
  names = runs;
  many = new ManyScenes(runs, openScene);
  if (runs.length < 2) return;
  for (const element of document.querySelectorAll(".second")) element.removeAttribute("hidden");
  $("players").classList.add("three");
  ["agent-figure", "agent-figure-2"].forEach((id, number) => {
    $(id).querySelector("figcaption").textContent = runs[number];
  });
}

function openScene(seed, by) {
  followScene();
  Object.assign(choices, { by, seed, rotation: 0, colorSeed: null, video: choices.scene.video });
  choices.scene.seed = seed;
  changed(true);
  $("scene-title").scrollIntoView({ block: "nearest" });
}

async function onMap(status) {
  const before = mapStatus?.state;
  const ready = status.state === "ready";
  const percent = status.progress > 0 && status.progress < 1 ? ` (${Math.round(100 * status.progress)} %)` : "";
  $("map-status").textContent = ready ? "" : sentence(status.detail) + percent;
  $("map-body").hidden = $("color-by").hidden = !ready;
  $("map-card").hidden = status.state === "unavailable"; // the card above says why
  if (ready && before !== "ready") map.load(await fetchJson("/api/map")); // if this fails, the status is handed over again
  mapStatus = status;
  if (current && status.state !== before && before !== "embedded") await analyse(current.task);
}

readUrl();
$("example-details").open = matchMedia("(min-width: 881px)").matches; // on a phone the images come first
$("run").addEventListener("click", runOrStop);
$("film").addEventListener("click", downloadFilm);
addEventListener("hashchange", () => {
  readUrl();
  if (!$("explorer").hidden) changed(true); // before the agent is loaded, onReady takes the new choices
});
watchStatus(onReady, onMap);
