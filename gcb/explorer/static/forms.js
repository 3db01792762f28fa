// The controls: they show what is chosen, and say when it changes.

import { anySeed, asInThePaper, choices, followScene, surprise } from "./choices.js";

const $ = (id) => document.getElementById(id);
const TASKS = { drawer: "set the drawer", button: "press the button" };

// `changed(scene)` hears of every choice; `scene` is true when it is another scene.
export function wire(tasks, byExample, changed) {
  const there = $("there-form");
  const here = $("here-form");
  $("task").append(...tasks.map((task) => segment("task", task, TASKS[task] ?? task)));
  $("task").classList.toggle("lonely", tasks.length < 2);
  if (!byExample) {
    for (const one of there.elements.by) one.disabled = one.value !== "goal";
    choices.by = "goal";
  }
  there.addEventListener("submit", (event) => event.preventDefault());
  here.addEventListener("submit", (event) => event.preventDefault());
  there.addEventListener("input", (event) => {
    if (readThere(event.target)) changed(false);
  });
  here.addEventListener("input", (event) => {
    if (readHere(event.target)) changed(true);
  });
  $("surprise").addEventListener("click", () => {
    surprise(tasks);
    changed(false);
  });
  $("plain").addEventListener("click", () => {
    asInThePaper();
    changed(false);
  });
  $("another").addEventListener("click", () => {
    choices.scene.seed = anySeed();
    followScene();
    changed(true);
  });
}

export function usePoint(index) {
  Object.assign(choices, { by: "data", index });
}

// `scene` is what the server says of the scene, `here` of what is asked in it.
export function showChoices(scene, here) {
  const there = $("there-form").elements;
  const task = choices.task ?? here?.task ?? scene?.task;
  $("by-data").hidden = choices.index === null;
  check(there.by, choices.by);
  if (there.task) check(there.task, task);
  slide(there.before, 100 * (choices.before ?? scene?.before ?? 0), (value) => `${value} %`);
  slide(there.after, 100 * (choices.after ?? scene?.after ?? 0), (value) => `${value} %`);
  slide(there.turn, choices.turn, (value) => (Number(value) ? `${value > 0 ? "+" : ""}${value}°` : "as here"));
  write(there.seed, choices.seed);
  write(there.colors, choices.colors ?? "");
  there.video.checked = choices.video;
  write($("here-form").elements.seed, choices.scene.seed);
  $("here-form").elements.video.checked = choices.scene.video;
  for (const part of document.querySelectorAll("[data-for]")) {
    const fits = part.dataset.for.split(" ").includes(choices.by);
    part.hidden = !fits || (part.dataset.task !== undefined && part.dataset.task !== task);
  }
}

function readThere(control) {
  const { name, value } = control;
  if (!control.checkValidity()) return false;
  if (name === "by" || name === "task") choices[name] = value;
  else if (name === "before" || name === "after") {
    choices[name] = Number(value) / 100;
    control.nextElementSibling.value = `${value} %`;
  } else if (name === "turn") choices.turn = Number(value);
  else if (name === "video") choices.video = control.checked;
  else if (name === "colors") choices.colors = value === "" ? null : Number(value);
  else if (name === "seed") choices.seed = Number(value);
  else return false;
  return true;
}

function readHere(control) {
  if (!control.checkValidity()) return false;
  if (control.name === "video") choices.scene.video = control.checked;
  else if (control.name === "seed") {
    choices.scene.seed = Number(control.value);
    followScene();
  } else return false;
  return true;
}

function segment(name, value, text) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), { type: "radio", name, value });
  const span = document.createElement("span");
  span.textContent = text;
  label.append(input, span);
  return label;
}

function check(group, value) {
  for (const one of group instanceof RadioNodeList ? group : [group]) one.checked = one.value === value;
}

function slide(input, value, say) {
  if (document.activeElement !== input) input.value = value;
  input.nextElementSibling.value = say(input.value);
  input.setAttribute("aria-valuetext", say(input.value));
}

// A number that is being typed is not to be replaced under the visitor's fingers.
function write(input, value) {
  if (document.activeElement !== input) input.value = value;
}
