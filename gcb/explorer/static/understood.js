// What the agent makes of the example: the tasks it finds alike, and the goal it infers.

import { picture } from "./api.js";

const $ = (id) => document.getElementById(id);
const percent = (share) => `${Math.round(100 * share)} %`;

// `task` is what is asked for, by name.
export function showUnderstood(found, task, use) {
  $("understood-state").textContent = "";
  $("understood").hidden = false;
  $("neighbours").replaceChildren(...found.neighbours.map((one) => neighbour(one, use)));
  const inferred = found.inferred;
  $("inferred-part").hidden = !inferred;
  if (!inferred) return;
  $("inferred").src = picture(inferred.index, inferred.part);
  $("judged").replaceChildren(...verdicts(inferred, task));
}

export function showNothing(reason) {
  $("understood").hidden = true;
  $("understood-state").textContent = reason;
}

function neighbour(one, use) {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", title: "Use as the example" });
  button.append(thumb(one.index, "state"), thumb(one.index, "goal"));
  const words = document.createElement("span");
  words.textContent = one.words;
  button.append(words);
  button.addEventListener("click", () => use(one.index));
  item.append(button);
  return item;
}

function thumb(index, part) {
  return Object.assign(document.createElement("img"), { src: picture(index, part), alt: "", loading: "lazy" });
}

function verdicts(inferred, task) {
  if (inferred.function === undefined) return [];
  const drawer = task === "button" ? "lower drawer" : "drawer";
  const opening = `${drawer} ${percent(inferred.opening)} open, asked ${percent(inferred.wanted_opening)}`;
  const place = `cabinet off by ${Math.round(inferred.yaw)}° and ${Math.round(100 * inferred.position)} cm`;
  return [verdict(inferred.function, "function", opening), verdict(inferred.pose, "pose", place)];
}

function verdict(right, what, detail) {
  const item = document.createElement("li");
  item.className = right ? "right" : "wrong";
  const head = document.createElement("b");
  head.textContent = `${right ? "right" : "wrong"} ${what}`;
  const text = document.createElement("span");
  text.textContent = detail;
  item.append(head, text);
  return item;
}
