// The page: an example, a scene, and an agent that is to do here what was done there.

import { ask, latest, lines, Refusal, Unreachable } from "./api.js";
import { asked, choices, readAddress, writeAddress } from "./choices.js";
import { Film } from "./film.js";
import { showChoices, usePoint, wire } from "./forms.js";
import { TaskMap } from "./map.js";
import { notice, sentence, watch } from "./status.js";
import { showNothing, showUnderstood } from "./understood.js";

const $ = (id) => document.getElementById(id);
const film = new Film();
const map = new TaskMap(useTask);
let scene = null; // what the server says of the scene
let here = null; // and of what is asked in it
let mapState = null;
let episode = null; // ends the episode under way

// ---- choosing ------------------------------------------------------------------------------------------------

const PAUSE = 120; // ms in which another choice, or a slider's next position, takes this one's place

function changed(newScene) {
  if (newScene) scene = null;
  stop();
  writeAddress();
  showChoices(scene, null);
  refresh().catch(complain);
}

const refresh = latest(async (signal) => {
  document.body.classList.add("busy");
  $("do-it").disabled = true; // at once: what is shown is no longer what is asked
  try {
    await new Promise((resume) => setTimeout(resume, PAUSE));
    if (!scene) {
      scene = await ask("/api/scene", choices.scene, signal);
      film.reset(scene.image);
      showChoices(scene, null);
    }
    const told = await ask("/api/told", asked(), signal);
    here = told.here;
    showTold(told);
    await understand(told.here.task, signal);
  } finally {
    if (!signal.aborted) document.body.classList.remove("busy");
  }
});

function showTold(told) {
  $("there-error").hidden = true;
  film.reset(scene.image);
  const byGoal = choices.by === "goal";
  $("before").src = told.before;
  $("after").src = told.after;
  $("before-caption").textContent = byGoal ? "the scene now" : "before";
  $("after-caption").textContent = byGoal ? "the goal image" : "after";
  for (const id of ["before", "after"]) $(id).parentElement.classList.toggle("pixels", choices.by === "data");
  $("there-title").textContent = byGoal ? "The goal" : "There";
  document.querySelector(".as").classList.toggle("mute", byGoal);
  $("there-words").textContent = told.words;
  $("here-words").textContent = told.here.done ? "it is so already: leave it" : told.here.words;
  verdict("Press “Do it” and watch.");
  doButton("Do it", false);
  showChoices(scene, told.here);
  $("do-it").disabled = false;
}

async function understand(task, signal) {
  map.ring([]);
  if (!mapState || !["neighbours", "ready"].includes(mapState.state)) {
    showNothing(mapState ? sentence(mapState.what) : "");
    return;
  }
  try {
    const found = await ask("/api/understand", asked(), signal);
    showUnderstood(found, task, useTask);
    map.ring(found.neighbours.map((one) => one.index));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    showNothing(error.message); // the agent can act all the same
  }
}

function useTask(index) {
  usePoint(index);
  changed(false);
  $("there-title").scrollIntoView({ block: "nearest" });
}

function complain(error) {
  if (error instanceof Unreachable) return; // the watch says so
  if (!scene) {
    notice(error.message, "bad");
    return;
  }
  $("there-error").textContent = error.message;
  $("there-error").hidden = false;
  $("do-it").disabled = true;
}

// ---- doing ---------------------------------------------------------------------------------------------------

function stop() {
  episode?.abort();
  episode = null;
}

async function doIt() {
  if (episode) {
    stop();
    verdict(`Stopped at step ${Math.max(0, film.steps.length - 1)}.`);
    return;
  }
  const mine = (episode = new AbortController());
  doButton("Stop", true);
  verdict("The agent is setting off.");
  try {
    for await (const event of lines("/api/play", asked(), mine.signal)) onEvent(event);
  } catch (error) {
    if (!mine.signal.aborted) verdict(error.message, "failed");
  } finally {
    film.enable();
    if (episode === mine) episode = null;
    if (!episode) doButton(film.steps.length ? "Do it again" : "Do it", false);
  }
}

function onEvent(event) {
  if (event.kind === "waiting") verdict("Other visitors are watching; your turn comes in a moment.");
  if (event.kind === "start") {
    film.start(event);
    verdict("Watch.");
  }
  if (event.kind === "step") film.add(event);
  if (event.kind === "error") verdict(event.reason, "failed");
  if (event.kind === "end") {
    film.end(event);
    film.onEnd = () => {
      film.onEnd = null;
      judge(event);
    };
    if (!film.playing) film.onEnd(); // the visitor is looking at another step
  }
}

function judge({ reached_at: reached, at_end: atEnd, expert_reached_at: expert }) {
  const yardstick = expert === null ? "" : ` The expert needs ${expert} steps.`;
  if (reached === null) verdict(`Not done in ${film.steps.length - 1} steps.${yardstick}`, "failed");
  else if (atEnd) verdict(`Done at step ${reached}, and left so.${yardstick}`, "success");
  else verdict(`Done at step ${reached}, but no longer at the end.${yardstick}`, "success");
}

function verdict(text, kind = "") {
  $("verdict").textContent = text;
  $("verdict").className = `verdict ${kind}`;
}

function doButton(text, running) {
  $("do-it").textContent = text;
  $("do-it").classList.toggle("running", running);
}

// ---- the run -------------------------------------------------------------------------------------------------

function onReady(status) {
  if (status.no_play) return;
  $("stage").hidden = false;
  wire(status.tasks, status.supports_analogy, changed);
  if (!status.tasks.includes(choices.task)) choices.task = null;
  if (!location.hash) choices.scene.video = choices.video = status.video; // as it was trained
  if (!status.supports_analogy) notice(`${status.method} cannot be told what to do by an example; show it a goal image instead.`);
  showChoices(null, null);
  refresh().catch(complain);
}

async function onMap(state) {
  const before = mapState?.state;
  mapState = state;
  $("map-state").textContent = state.state === "ready" ? "" : sentence(state.what) + (state.done > 0 && state.done < 1 ? ` (${Math.round(100 * state.done)} %)` : "");
  $("map-body").hidden = state.state !== "ready";
  $("shade").hidden = state.state !== "ready";
  if (state.state === before) return;
  if (here && before !== "neighbours") await understand(here.task).catch(complain);
  if (state.state === "ready") map.load(await ask("/api/map"));
}

readAddress();
$("there-details").open = matchMedia("(min-width: 881px)").matches; // on a phone the pictures come first
$("do-it").addEventListener("click", doIt);
addEventListener("hashchange", () => {
  readAddress();
  changed(true);
});
watch(onReady, onMap);
