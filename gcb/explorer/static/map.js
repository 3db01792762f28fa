// The map of tasks: points on a canvas, for mouse, touch and arrow keys.

import { taskImage } from "./api.js";

const $ = (id) => document.getElementById(id);
const MARGIN = 18;
const REACH = 18; // pixels within which the pointer selects a point
const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const TASK_COLORS = [[214, 120, 38], [37, 120, 190], [120, 90, 200], [60, 150, 90]];
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class TaskMap {
  // `use(index)` makes a task the example.
  constructor(use) {
    this.use = use;
    this.points = null;
    this.at = null;
    this.ringed = [];
    this.colorBy = "value";
    this.canvas = $("points");
    const box = $("map");
    new ResizeObserver(() => this.draw()).observe(box);
    box.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.select(this.find(event)));
    box.addEventListener("click", (event) => this.click(event));
    box.addEventListener("keydown", (event) => this.key(event));
    $("use-point").addEventListener("click", () => this.at !== null && this.use(this.at));
    $("color-by").addEventListener("change", (event) => {
      this.colorBy = event.target.value;
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  load(points) {
    this.points = points;
    this.tasks = [...new Set(points.task)].sort();
    const valued = points.value !== null; // agents that come with gcb have no value functions
    if (!valued) this.colorBy = "task";
    $("color-by").hidden = !valued;
    const sorted = [...(points.value ?? [0])].sort((a, b) => a - b);
    const quantile = (q) => sorted[Math.floor(q * (sorted.length - 1))];
    this.low = quantile(0.02);
    this.high = Math.max(quantile(0.98), this.low + 1e-9);
    this.draw();
    this.ring(this.ringed);
  }

  ring(indices) {
    this.ringed = indices;
    if (this.at === null && indices.length) this.select(indices[0]);
    this.draw();
  }

  click(event) {
    const index = this.find(event);
    if (index === null) return;
    this.select(index);
    if (event.pointerType !== "touch") this.use(index);
  }

  key(event) {
    if (!this.points) return;
    if (event.key === "Enter" || event.key === " ") {
      if (this.at !== null) this.use(this.at);
    } else if (DIRECTIONS[event.key]) {
      this.select(this.at === null ? 0 : this.neighbour(DIRECTIONS[event.key]));
    } else return;
    event.preventDefault();
  }

  select(index) {
    if (index === null || index === this.at || !this.points) return;
    this.at = index;
    $("point-card").hidden = false;
    $("point-state").src = taskImage(index, "state");
    $("point-goal").src = taskImage(index, "goal");
    const value = this.points.value?.[index];
    $("point-label").textContent = this.points.label[index] + (value === undefined ? "" : ` · value ${value.toFixed(2)}`);
    this.draw();
  }

  find(event) {
    if (!this.points) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let nearest = REACH ** 2;
    for (let index = 0; index < this.points.x.length; index++) {
      const [px, py] = this.position(index);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < nearest) [nearest, best] = [distance, index];
    }
    return best;
  }

  // The next point in a direction: close, and not far to the side.
  neighbour([dx, dy]) {
    const [x, y] = this.position(this.at);
    let best = this.at;
    let least = Infinity;
    for (let index = 0; index < this.points.x.length; index++) {
      const [px, py] = this.position(index);
      const along = (px - x) * dx + (py - y) * dy;
      const sideways = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along > 1 && along + 2.5 * sideways < least) [least, best] = [along + 2.5 * sideways, index];
    }
    return best;
  }

  position(index) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [
      MARGIN + this.points.x[index] * (width - 2 * MARGIN),
      MARGIN + (1 - this.points.y[index]) * (height - 2 * MARGIN),
    ];
  }

  color(index) {
    if (this.colorBy === "task") return TASK_COLORS[this.tasks.indexOf(this.points.task[index]) % TASK_COLORS.length];
    return colormap((this.points.value[index] - this.low) / (this.high - this.low));
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.points || !width) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    const size = width < 500 ? 2.6 : 3.6;
    for (let index = 0; index < this.points.x.length; index++) {
      context.fillStyle = `rgba(${this.color(index).join(",")},0.85)`;
      disc(context, ...this.position(index), size);
      context.fill();
    }
    const style = getComputedStyle(document.documentElement);
    for (const index of this.ringed) this.ringAt(context, index, size + 4, style.getPropertyValue("--example"));
    if (this.at !== null) this.ringAt(context, this.at, size + 5, style.getPropertyValue("--ink"));
    this.drawLegend();
  }

  ringAt(context, index, radius, color) {
    context.strokeStyle = color;
    context.lineWidth = 2.5;
    disc(context, ...this.position(index), radius);
    context.stroke();
  }

  drawLegend() {
    const items = [];
    if (this.colorBy === "task") {
      this.tasks.forEach((task, number) => items.push(swatch(TASK_COLORS[number % TASK_COLORS.length]), task));
    } else {
      const steps = [0, 0.25, 0.5, 0.75, 1].map((fraction) => swatch(colormap(fraction)));
      items.push("critic’s value: low", ...steps, "high");
    }
    $("legend").replaceChildren(...items);
  }
}

function disc(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function colormap(fraction) {
  const position = Math.min(0.9999, Math.max(0, fraction)) * (VIRIDIS.length - 1);
  const [low, high] = [VIRIDIS[Math.floor(position)], VIRIDIS[Math.floor(position) + 1]];
  return low.map((part, channel) => Math.round(part + (position % 1) * (high[channel] - part)));
}

function swatch(color) {
  const element = document.createElement("i");
  element.style.background = `rgb(${color.join(",")})`;
  return element;
}
