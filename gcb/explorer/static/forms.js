// The form controls: they show the choices and report changes.

import { asInThePaper, choices, followScene, randomSeed, surprise } from "./choices.js";

const $ = (id) => document.getElementById(id);
const TASKS = { drawer: "Move the drawer", button: "Press the button" };

// `changed(scene)` is called after every change; `scene` is true if the agent's scene changed.
export function connectForms(tasks, supportsAnalogy, changed) {
  const exampleForm = $("example-form");
  const sceneForm = $("scene-form");
  $("task").append(...tasks.map((task) => radioButton("task", task, TASKS[task] ?? task)));
  if (!supportsAnalogy) {
    for (const input of exampleForm.elements.by) input.disabled = input.value !== "goal";
    choices.by = "goal";
  }
  for (const form of [exampleForm, sceneForm]) form.addEventListener("submit", (event) => event.preventDefault());
  exampleForm.addEventListener("input", (event) => {
    if (readExampleControl(event.target)) changed(false);
  });
  sceneForm.addEventListener("input", (event) => {
    if (readSceneControl(event.target)) changed(true);
  });
  $("surprise").addEventListener("click", () => {
    surprise(tasks);
    changed(false);
  });
  $("paper").addEventListener("click", () => {
    asInThePaper();
    changed(false);
  });
  $("new-scene").addEventListener("click", () => {
    choices.scene.seed = randomSeed();
    followScene();
    changed(true);
  });
}

export function useDatasetTask(index) {
  Object.assign(choices, { by: "dataset", index });
}

// `scene` is the server's description of the scene, `current` of the scene with the current task.
export function showChoices(scene, current) {
  const example = $("example-form").elements;
  const task = choices.task ?? current?.task ?? scene?.task;
  $("by-dataset").hidden = choices.index === null;
  check(example.by, choices.by);
  if (example.task) check(example.task, task);
  slide(example.before, 100 * (choices.before ?? scene?.drawer_before ?? 0), percentOpen);
  slide(example.after, 100 * (choices.after ?? scene?.drawer_after ?? 0), percentOpen);
  slide(example.rotation, choices.rotation, (value) => `${value > 0 ? "+" : ""}${value}°`);
  write(example.seed, choices.seed);
  write(example.colorSeed, choices.colorSeed ?? "");
  example.video.checked = choices.video;
  write($("scene-form").elements.seed, choices.scene.seed);
  $("scene-form").elements.video.checked = choices.scene.video;
  for (const element of document.querySelectorAll("[data-for]")) {
    const applies = element.dataset.for.split(" ").includes(choices.by);
    element.hidden = !applies || (element.dataset.task !== undefined && element.dataset.task !== task);
  }
}

const percentOpen = (value) => `${value} %`;

function readExampleControl(control) {
  const { name, value } = control;
  if (!control.checkValidity()) return false;
  if (name === "by" || name === "task") choices[name] = value;
  else if (name === "before" || name === "after") {
    choices[name] = Number(value) / 100;
    control.nextElementSibling.value = percentOpen(value);
  } else if (name === "rotation") choices.rotation = Number(value);
  else if (name === "video") choices.video = control.checked;
  else if (name === "colorSeed") choices.colorSeed = value === "" ? null : Number(value);
  else if (name === "seed") choices.seed = Number(value);
  else return false;
  return true;
}

function readSceneControl(control) {
  if (!control.checkValidity()) return false;
  if (control.name === "video") choices.scene.video = control.checked;
  else if (control.name === "seed") {
    choices.scene.seed = Number(control.value);
    followScene();
  } else return false;
  return true;
}

function radioButton(name, value, text) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), { type: "radio", name, value });
  const span = document.createElement("span");
  span.textContent = text;
  label.append(input, span);
  return label;
}

function check(group, value) {
  for (const input of group instanceof RadioNodeList ? group : [group]) input.checked = input.value === value;
}

function slide(input, value, format) {
  if (document.activeElement !== input) input.value = value;
  input.nextElementSibling.value = format(input.value);
  input.setAttribute("aria-valuetext", format(input.value));
}

// Does not replace a number while the visitor is typing it.
function write(input, value) {
  if (document.activeElement !== input) input.value = value;
}
