// The map of tasks: points on a canvas, for mouse, finger and arrow keys.

import { picture } from "./api.js";

const $ = (id) => document.getElementById(id);
const MARGIN = 18;
const NEAR = 18; // pixels within which a point is meant
const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const TASK_INK = [[214, 120, 38], [37, 120, 190], [120, 90, 200], [60, 150, 90]];
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class TaskMap {
  constructor(use) {
    this.use = use;
    this.points = null;
    this.at = null;
    this.ringed = [];
    this.shade = "value";
    this.canvas = $("points");
    const box = $("map");
    new ResizeObserver(() => this.draw()).observe(box);
    box.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.point(this.find(event)));
    box.addEventListener("click", (event) => this.choose(event));
    box.addEventListener("keydown", (event) => this.key(event));
    $("use-point").addEventListener("click", () => this.at !== null && this.use(this.at));
    $("shade").addEventListener("change", (event) => {
      this.shade = event.target.value;
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  load(points) {
    this.points = points;
    this.tasks = [...new Set(points.task)].sort();
    const sorted = [...points.value].sort((a, b) => a - b);
    const part = (share) => sorted[Math.floor(share * (sorted.length - 1))];
    this.low = part(0.02);
    this.high = Math.max(part(0.98), this.low + 1e-9);
    this.draw();
    this.ring(this.ringed);
  }

  ring(indices) {
    this.ringed = indices;
    if (this.at === null && indices.length) this.point(indices[0]);
    this.draw();
  }

  choose(event) {
    const found = this.find(event);
    if (found === null) return;
    this.point(found);
    if (event.pointerType !== "touch") this.use(found);
  }

  key(event) {
    if (!this.points) return;
    if (event.key === "Enter" || event.key === " ") {
      if (this.at !== null) this.use(this.at);
    } else if (DIRECTIONS[event.key]) {
      this.point(this.at === null ? 0 : this.beside(DIRECTIONS[event.key]));
    } else return;
    event.preventDefault();
  }

  point(index) {
    if (index === null || index === this.at || !this.points) return;
    this.at = index;
    $("point-card").hidden = false;
    $("point-state").src = picture(index, "state");
    $("point-goal").src = picture(index, "goal");
    $("point-words").textContent = `${this.points.words[index]} · value ${this.points.value[index].toFixed(2)}`;
    this.draw();
  }

  find(event) {
    if (!this.points) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let nearest = NEAR ** 2;
    for (let index = 0; index < this.points.x.length; index++) {
      const [px, py] = this.place(index);
      const far = (px - x) ** 2 + (py - y) ** 2;
      if (far < nearest) [nearest, best] = [far, index];
    }
    return best;
  }

  // The next point in a direction: near, and not far aside.
  beside([dx, dy]) {
    const [x, y] = this.place(this.at);
    let best = this.at;
    let least = Infinity;
    for (let index = 0; index < this.points.x.length; index++) {
      const [px, py] = this.place(index);
      const along = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along > 1 && along + 2.5 * aside < least) [least, best] = [along + 2.5 * aside, index];
    }
    return best;
  }

  place(index) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [
      MARGIN + this.points.x[index] * (width - 2 * MARGIN),
      MARGIN + (1 - this.points.y[index]) * (height - 2 * MARGIN),
    ];
  }

  ink(index) {
    if (this.shade === "task") return TASK_INK[this.tasks.indexOf(this.points.task[index]) % TASK_INK.length];
    return ramp((this.points.value[index] - this.low) / (this.high - this.low));
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.points || !width) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const size = width < 500 ? 2.6 : 3.6;
    for (let index = 0; index < this.points.x.length; index++) {
      pen.fillStyle = `rgba(${this.ink(index).join(",")},0.85)`;
      disc(pen, ...this.place(index), size);
      pen.fill();
    }
    const style = getComputedStyle(document.documentElement);
    for (const index of this.ringed) this.ringAt(pen, index, size + 4, style.getPropertyValue("--there"));
    if (this.at !== null) this.ringAt(pen, this.at, size + 5, style.getPropertyValue("--ink"));
    this.drawLegend();
  }

  ringAt(pen, index, radius, ink) {
    pen.strokeStyle = ink;
    pen.lineWidth = 2.5;
    disc(pen, ...this.place(index), radius);
    pen.stroke();
  }

  drawLegend() {
    const parts = [];
    if (this.shade === "task") {
      this.tasks.forEach((task, number) => parts.push(swatch(TASK_INK[number % TASK_INK.length]), task));
    } else {
      const steps = [0, 0.25, 0.5, 0.75, 1].map((share) => swatch(ramp(share)));
      parts.push("the critic’s value: low", ...steps, "high");
    }
    $("legend").replaceChildren(...parts);
  }
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
}

function ramp(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (VIRIDIS.length - 1);
  const [low, high] = [VIRIDIS[Math.floor(place)], VIRIDIS[Math.floor(place) + 1]];
  return low.map((part, channel) => Math.round(part + (place % 1) * (high[channel] - part)));
}

function swatch(ink) {
  const made = document.createElement("i");
  made.style.background = `rgb(${ink.join(",")})`;
  return made;
}
