// The state of the run and of the server: loading, waiting for a checkpoint, failed, deleted, unreachable.

import { fetchJson, Unreachable } from "./api.js";

const $ = (id) => document.getElementById(id);
const ENVS = { "gcb/ButtonDrawer-v0": "Button and Drawer", "gcb/Drawer-v0": "Drawer" };
const MODES = { goal: "by goal image", strict: "by example", free: "by example from anywhere" };
const DELETED = "The run directory ";

// Polls the server. `onReady` is called once the agent is loaded, `onMap` each time the state of the map changes; if
// `onMap` fails, it is called again.
export async function watchStatus(onReady, onMap) {
  let ready = false;
  let unreachable = false;
  let previousMap = "";
  for (;;) {
    try {
      const status = await fetchJson("/api/status");
      if (unreachable) showNotice(null);
      unreachable = false;
      showStatus(status);
      if (status.state === "ready" && !ready) {
        ready = true;
        onReady(status);
      }
      const map = JSON.stringify(status.map ?? null);
      if (ready && map !== previousMap) {
        await onMap(status.map);
        previousMap = map;
      }
      const settled = ready && ["ready", "unavailable"].includes(status.map.state);
      await pause(settled ? 4000 : ready ? 800 : 100);
    } catch (error) {
      unreachable = true;
      const text = "The server does not respond. Is gcb explore still running? This page keeps trying.";
      showNotice(error instanceof Unreachable ? text : error.message, "bad");
      if (!ready) showLoading("No response", "The server cannot be reached.", false);
      await pause(1500);
    }
  }
}

export function showNotice(text, level = "") {
  $("notice").hidden = !text;
  $("notice").className = `notice ${level}`;
  $("notice").textContent = text ?? "";
}

function showStatus(status) {
  document.body.dataset.state = status.state;
  if (status.state === "ready") {
    showRunInfo(status);
    if (status.unavailable) showLoading("The agent cannot be run here", sentence(status.unavailable), false);
    else $("loading").hidden = true;
    if (status.deleted) showNotice(`${DELETED}${status.deleted} was deleted. The page works from memory until the server stops.`, "bad");
    else if ($("notice").textContent.startsWith(DELETED)) showNotice(null);
    return;
  }
  $("explorer").hidden = true;
  const detail = sentence(status.detail);
  if (status.state === "loading") showLoading("Loading the agent", "This takes a few seconds.", true);
  if (status.state === "waiting") showLoading("No checkpoint yet", `${detail} The page continues once there is one.`, true);
  if (status.state === "failed") showLoading("This run cannot be loaded", `${detail} The page retries by itself.`, false);
}

function showLoading(title, text, busy) {
  $("loading").hidden = false;
  $("loading").classList.toggle("busy", busy);
  showText($("loading-title"), title);
  showText($("loading-text"), text);
}

// Shows what is between backquotes as code. A text that is shown already is left alone, so that a visitor can select it.
export function showText(element, text) {
  const parts = text.split("`");
  if (element.textContent === parts.join("")) return;
  const code = (part) => Object.assign(document.createElement("code"), { textContent: part });
  element.replaceChildren(...parts.map((part, index) => (index % 2 ? code(part) : part)));
}

function showRunInfo(status) {
  const text = JSON.stringify([status.runs, status.env]);
  if (text === shownInfo) return; // so that a visitor can select it
  shownInfo = text;
  const rows = status.runs.map((run) => runFields(run, status).map(infoItem));
  const gap = Object.assign(document.createElement("li"), { className: "break", ariaHidden: "true" });
  $("run-info").replaceChildren(...(rows.length > 1 ? [...rows[0], gap, ...rows[1]] : rows[0]));
}

let shownInfo = "";

function runFields(run, status) {
  const modes = Object.keys(MODES).filter((mode) => mode in run.success);
  const rates = modes.map((mode) => `${Math.round(100 * run.success[mode])} % ${MODES[mode]}`);
  return [
    ["run", run.bundled ? `${run.run}, which comes with gcb` : run.run, run.path],
    ["method", run.method, run.summary],
    ["trained", `${run.steps.toLocaleString("en")} steps`],
    ...(status.runs.length > 1 ? [] : [["environment", ENVS[status.env] ?? status.env ?? "unknown"]]),
    ...(rates.length ? [["success", rates.join(", ")]] : []),
  ];
}

function infoItem([name, value, title = ""]) {
  const item = Object.assign(document.createElement("li"), { title });
  const label = document.createElement("b");
  label.textContent = name;
  item.append(label, value);
  return item;
}

export const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
