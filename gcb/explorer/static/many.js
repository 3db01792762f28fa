// Success over many scenes: one square per scene and agent, and the rate so far with its interval.

import { fetchLines } from "./api.js";
import { choices } from "./choices.js";
import { sentence } from "./status.js";

const $ = (id) => document.getElementById(id);
const percent = (fraction) => `${Math.round(100 * fraction)} %`;
const by = () => (choices.by === "goal" ? "goal" : "example");

export class ManyScenes {
  // `open(seed, by)` shows a scene on the page; `names` are those of the runs.
  constructor(names, open) {
    this.names = names;
    this.open = open;
    this.running = null;
    $("many").disabled = false;
    $("many-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.running ? this.stop() : this.play(Number(event.target.elements.scenes.value));
    });
  }

  stop() {
    this.running?.abort();
  }

  async play(scenes) {
    const mine = (this.running = new AbortController());
    const request = { by: by(), seed: choices.scene.seed, scenes, video: choices.scene.video };
    const rows = this.names.map((name) => this.row(name));
    $("squares").replaceChildren(...rows.flatMap(({ label, list }) => [label, list]));
    $("many").textContent = "Stop";
    this.say("The first scene …");
    try {
      for await (const event of fetchLines("/api/success", request, mine.signal)) this.onEvent(event, request, rows);
    } catch (error) {
      if (!mine.signal.aborted) this.say(sentence(error.message), "failure");
    } finally {
      this.running = null;
      $("many").textContent = "Play them";
    }
  }

  onEvent(event, request, rows) {
    if (event.type === "waiting") this.say("All simulators are in use; the first scene starts in a moment.");
    if (event.type === "error") this.say(sentence(event.detail), "failure");
    if (event.type !== "scene") return;
    rows.forEach(({ list }, number) => list.append(this.square(event, event.success[number], request)));
    const texts = event.rates.map(({ rate, interval, successes, of }, number) => {
      const name = this.names.length > 1 ? `${this.names[number]}: ` : "";
      return `${name}${successes} of ${of} scenes, ${percent(rate)} [${interval.map((end) => Math.round(100 * end)).join(", ")}]`;
    });
    if (event.difference) {
      const { value, interval } = event.difference;
      texts.push(`difference in the same scenes: ${signed(value)} [${interval.map(signed).join(", ")}] points`);
    }
    this.say(`${texts.join("\n")} (95 % interval)`);
  }

  row(name) {
    const label = document.createElement("p");
    label.className = "label";
    label.textContent = this.names.length > 1 ? name : "";
    return { label, list: document.createElement("ol") };
  }

  square({ seed, label }, success, request) {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", className: success ? "success" : "failure" });
    button.textContent = success ? "✓" : "✗";
    button.title = `Scene ${seed}, ${label}: ${success ? "success" : "no success"}. Click to see it.`;
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", () => this.open(seed, request.by));
    item.append(button);
    return item;
  }

  say(text, level = "") {
    $("rate").hidden = false;
    $("rate").textContent = text;
    $("rate").className = `outcome ${level}`;
  }
}

const signed = (fraction) => `${fraction >= 0 ? "+" : "−"}${Math.abs(Math.round(100 * fraction))}`;

export function showManyBy() {
  $("many-by").textContent = by() === "goal" ? "given by a goal image" : "given by an example";
}
