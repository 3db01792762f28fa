// The agent's representation of the task: its nearest tasks in φ and the inferred goal.

import { taskImage } from "./api.js";
import { showText } from "./status.js";

const $ = (id) => document.getElementById(id);
const percent = (fraction) => `${Math.round(100 * fraction)} %`;

// `task` is the name of the current task; `use(index)` makes a task of the dataset the example.
export function showAnalysis(analysis, task, use) {
  $("analysis-status").textContent = "";
  $("analysis").hidden = false;
  $("neighbours").replaceChildren(...analysis.neighbours.map((neighbour) => neighbourItem(neighbour, use)));
  const inferred = analysis.inferred_goal;
  $("inferred-goal").hidden = !inferred;
  if (!inferred) return;
  $("inferred-image").src = taskImage(inferred.index, inferred.part);
  $("scores").replaceChildren(...scoreItems(inferred, task));
}

export function hideAnalysis(reason) {
  $("analysis").hidden = true;
  showText($("analysis-status"), reason);
}

function neighbourItem({ index, label }, use) {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", title: "Use as example" });
  const caption = document.createElement("span");
  caption.textContent = label;
  button.append(thumbnail(index, "state"), thumbnail(index, "goal"), caption);
  button.addEventListener("click", () => use(index));
  item.append(button);
  return item;
}

function thumbnail(index, part) {
  return Object.assign(document.createElement("img"), { src: taskImage(index, part), alt: "", loading: "lazy" });
}

function scoreItems(inferred, task) {
  if (inferred.same_function === undefined) return [];
  const drawer = task === "button" ? "lower drawer" : "drawer";
  const opening = `${drawer} ${percent(inferred.opening)} open, true goal ${percent(inferred.goal_opening)}`;
  const pose = `cabinet off by ${Math.round(inferred.yaw_error)}° and ${Math.round(100 * inferred.position_error)} cm`;
  return [scoreItem(inferred.same_function, "function", opening), scoreItem(inferred.same_pose, "pose", pose)];
}

function scoreItem(correct, name, detail) {
  const item = document.createElement("li");
  item.className = correct ? "correct" : "wrong";
  const head = document.createElement("b");
  head.textContent = `${correct ? "Correct" : "Wrong"} ${name}`;
  const text = document.createElement("span");
  text.textContent = detail;
  item.append(head, text);
  return item;
}
