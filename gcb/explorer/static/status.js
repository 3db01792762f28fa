// How things stand: loading, waiting for a checkpoint, failed, gone, out of reach. Each has its own face.

import { ask, Unreachable } from "./api.js";

const $ = (id) => document.getElementById(id);
const ENVS = { "gcb/ButtonDrawer-v0": "Button and Drawer", "gcb/Drawer-v0": "Drawer" };
const MODES = { goal: "by goal", strict: "by example", loose: "by loose example" };

// Asks the server again and again; `onReady` hears once that there is an agent, `onMap` each time the map has changed.
export async function watch(onReady, onMap) {
  let ready = false;
  let lost = false;
  let seen = "";
  for (;;) {
    try {
      const status = await ask("/api/run");
      if (lost) notice(null);
      lost = false;
      face(status);
      if (status.state === "ready" && !ready) {
        ready = true;
        onReady(status);
      }
      const map = JSON.stringify(status.map ?? null);
      if (ready && map !== seen) {
        seen = map;
        onMap(status.map);
      }
      const settled = ready && ["ready", "unavailable"].includes(status.map.state);
      await pause(settled ? 4000 : ready ? 800 : 350);
    } catch (error) {
      lost = true;
      notice(error instanceof Unreachable ? "The server does not answer. Is gcb explore still running? This page tries again by itself." : error.message, "bad");
      if (!ready) curtain("No answer", "The server cannot be reached.", false);
      await pause(1500);
    }
  }
}

export function notice(text, kind = "") {
  $("notice").hidden = !text;
  $("notice").className = `notice ${kind}`;
  $("notice").textContent = text ?? "";
}

function face(status) {
  document.body.dataset.state = status.state;
  if (status.state === "ready") {
    facts(status);
    if (status.no_play) curtain("Nothing to act out", sentence(status.no_play), false);
    else $("curtain").hidden = true;
    if (status.gone) notice(`The folder ${status.path} is gone. What you see comes from memory, and goes when the server stops.`, "bad");
    else if ($("notice").textContent.startsWith("The folder ")) notice(null);
    return;
  }
  $("curtain").hidden = false;
  $("stage").hidden = true;
  if (status.state === "loading") curtain("Loading the agent", "This takes a few seconds.", true);
  if (status.state === "waiting") curtain("No checkpoint yet", `${status.reason} This page goes on by itself as soon as there is one.`, true);
  if (status.state === "failed") curtain("This run cannot be shown", `${status.reason} Once that is mended, this page goes on by itself.`, false);
}

function curtain(title, text, busy) {
  $("curtain").hidden = false;
  $("curtain").classList.toggle("busy", busy);
  if ($("curtain-title").textContent !== title) $("curtain-title").textContent = title;
  if ($("curtain-text").textContent !== text) $("curtain-text").textContent = text;
}

function facts(status) {
  const rates = Object.entries(status.success).map(([mode, rate]) => `${Math.round(100 * rate)} % ${MODES[mode] ?? mode}`);
  const shown = [
    ["run", status.name],
    ["method", status.method],
    ["trained", `${status.steps.toLocaleString("en")} steps`],
    ["environment", ENVS[status.env] ?? status.env ?? "unknown"],
    ...(rates.length ? [["success", rates.join(", ")]] : []),
  ];
  $("facts").replaceChildren(...shown.map(([name, value]) => {
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
