// The state of the run and of the server: loading, waiting for a checkpoint, failed, deleted, unreachable.

import { fetchJson, Unreachable } from "./api.js";

const $ = (id) => document.getElementById(id);
const ENVS = { "gcb/ButtonDrawer-v0": "Button and Drawer", "gcb/Drawer-v0": "Drawer" };
const MODES = { goal: "by goal image", strict: "by example", loose: "by loose example", free: "by free example" };
const DELETED = "The run directory ";

// Polls the server. `onReady` is called once the agent is loaded, `onMap` each time the state of the map changes.
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
        previousMap = map;
        onMap(status.map);
      }
      const settled = ready && ["ready", "unavailable"].includes(status.map.state);
      await pause(settled ? 4000 : ready ? 800 : 350);
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
    if (status.run_deleted) showNotice(`${DELETED}${status.path} was deleted. The page works from memory until the server stops.`, "bad");
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
  if ($("loading-title").textContent !== title) $("loading-title").textContent = title;
  if ($("loading-text").textContent !== text) $("loading-text").textContent = text;
}

function showRunInfo(status) {
  const rates = Object.entries(status.success).map(([mode, rate]) => `${Math.round(100 * rate)} % ${MODES[mode] ?? mode}`);
  const fields = [
    ["run", status.run],
    ["method", status.method],
    ["trained", `${status.steps.toLocaleString("en")} steps`],
    ["environment", ENVS[status.env] ?? status.env ?? "unknown"],
    ...(rates.length ? [["success", rates.join(", ")]] : []),
  ];
  $("run-info").replaceChildren(...fields.map(([name, value]) => {
    const item = document.createElement("li");
    const label = document.createElement("b");
    label.textContent = name;
    item.append(label, value);
    item.title = name === "method" ? status.summary : name === "run" ? status.path : "";
    return item;
  }));
}

export const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
