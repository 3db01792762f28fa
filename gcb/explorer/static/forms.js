// The form controls: they show the choices and report changes.

import { asInThePaper, choices, followScene, randomSeed, surprise } from "./choices.js";
import { readPicture } from "./pictures.js";

const $ = (id) => document.getElementById(id);
const TASKS = { drawer: "Move the drawer", button: "Press the button" };

// `changed(scene)` is called after every change; `scene` is true if the agent's scene changed. `refuse(text)` is called
// when the value of a control is not valid. `status` is the server's.
export function connectForms(status, changed, refuse) {
  const { tasks, supports_analogy: supportsAnalogy, image_size: resolution } = status;
  const exampleForm = $("example-form");
  const sceneForm = $("scene-form");
  $("task").append(...tasks.map((task) => radioButton("task", task, TASKS[task] ?? task)));
  if (!supportsAnalogy) {
    for (const input of exampleForm.elements.by) input.disabled = input.value !== "goal";
    choices.by = "goal";
  }
  for (const form of [exampleForm, sceneForm]) form.addEventListener("submit", (event) => event.preventDefault());
  exampleForm.addEventListener("input", (event) => {
    if (event.target.type === "file") choosePicture(event.target, resolution, changed, refuse);
    else if (!event.target.checkValidity()) refuse(problemOf(event.target));
    else if (readExampleControl(event.target)) changed(false);
  });
  sceneForm.addEventListener("input", (event) => {
    if (!event.target.checkValidity()) refuse(problemOf(event.target));
    else if (readSceneControl(event.target)) changed(true);
  });
  $("resolution").textContent = `${resolution[1]}×${resolution[0]}`;
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

function problemOf({ min, max, labels }) {
  return `${labels[0].querySelector("span").textContent} must be a whole number from ${min} to ${max}.`;
}

async function choosePicture(control, resolution, changed, refuse) {
  const part = control.name === "beforePicture" ? "before" : "after";
  const caption = control.previousElementSibling;
  if (!control.files.length) return;
  try {
    const { png, text } = await readPicture(control.files[0], resolution);
    choices.pictures[part] = png;
    caption.textContent = `${part === "before" ? "Before" : "After"}: ${control.files[0].name}`;
    describePicture(part, text);
    changed(false);
  } catch (error) {
    refuse(error.message);
  }
}

const described = {};

function describePicture(part, text) {
  described[part] = `${part}: ${text}.`;
  $("pictures-status").textContent = Object.values(described).join(" ");
}

// Why there is no task yet, or null.
export function missingPictures() {
  if (choices.by !== "pictures") return null;
  const missing = Object.keys(choices.pictures).filter((part) => !choices.pictures[part]);
  return missing.length ? `Choose a picture for ${missing.join(" and for ")}.` : null;
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
