"use strict";
// The page works without this script but for zooming, the user's lines and the space-time diagram.
(() => {
  const STATES = ["busy", "waiting", "starved", "blocked", "idle"];
  const COLORS = ["#0072b2", "#56b4e9", "#e69f00", "#d55e00"];
  const count = (number) => number.toLocaleString("en-US");
  const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

  // --- the user's lines -------------------------------------------------------------------------
  const panel = document.getElementById("source");
  const sources = JSON.parse(document.getElementById("sources").textContent);
  let opener = null;
  function showSource(from) {
    const found = JSON.parse(sources[Number(from.dataset.source)]);
    opener = from;
    panel.querySelector("h3").textContent = found.place;
    const text = panel.querySelector("pre");
    text.textContent = found.lines.length ? "" : "the file is not there any more";
    found.lines.forEach((line, at) => {
      const number = found.first + at;
      const element = document.createElement(number === found.line ? "mark" : "span");
      element.textContent = `${String(number).padStart(4)} | ${line}`;
      text.append(element, "\n");
    });
    panel.hidden = false;
  }
  function hideSource() {
    if (panel.hidden) return;
    panel.hidden = true;
    if (opener) opener.focus();
  }
  document.getElementById("source-close").addEventListener("click", hideSource);

  // --- the flame graph --------------------------------------------------------------------------
  function zoomFlame(part) {
    const flame = part.closest("svg.flame");
    const start = Number(part.dataset.start);
    const cycles = Number(part.dataset.cycles);
    const level = Number(part.dataset.level);
    for (const other of flame.querySelectorAll(".part")) {
      const from = Number(other.dataset.start);
      const size = Number(other.dataset.cycles);
      const above = Number(other.dataset.level) <= level;
      const outside = from + size <= start || from >= start + cycles;
      other.style.display = outside ? "none" : "";
      if (outside) continue;
      const covers = above && from <= start && from + size >= start + cycles;
      other.setAttribute("x", covers ? "0%" : `${(100 * (from - start)) / cycles}%`);
      other.setAttribute("width", covers ? "100%" : `${(100 * size) / cycles}%`);
    }
    fitNames(flame);
    const view = flame.closest(".flame-view");
    view.querySelector(".reset").hidden = level === 0;
    view.querySelector(".status").textContent = part.getAttribute("aria-label");
  }

  // A name that is too long for its part ends with an ellipsis; parts of some pixels have none.
  function fitNames(flame) {
    const shown = [];
    for (const part of flame.querySelectorAll(".part")) {
      const text = part.querySelector("text");
      if (text.dataset.full === undefined) text.dataset.full = text.textContent;
      text.textContent = text.dataset.full;
      if (part.style.display !== "none") shown.push([part, text]);
    }
    const sizes = shown.map(([part, text]) => [
      part.querySelector("rect").getBoundingClientRect().width - 9, text.getComputedTextLength(),
    ]);
    shown.forEach(([, text], at) => {
      const [room, length] = sizes[at];
      if (length <= room) return;
      let letters = Math.floor((text.dataset.full.length * room) / length);
      do {
        letters -= 1;
        text.textContent = letters < 1 ? "" : `${text.dataset.full.slice(0, letters)}…`;
      } while (letters >= 1 && text.getComputedTextLength() > room);
    });
  }
  const fitAll = () => document.querySelectorAll("svg.flame").forEach(fitNames);
  window.addEventListener("resize", fitAll);
  fitAll();

  function press(target) {
    const part = target.closest(".part");
    if (part) zoomFlame(part);
    const chip = target.closest(".chip-view svg [data-source], .chip-view svg .channel");
    if (chip) {
      const title = chip.querySelector("title");
      const status = chip.closest(".chip-view").querySelector(".status");
      if (title) status.textContent = title.textContent;
    }
    const reset = target.closest(".reset");
    if (reset) zoomFlame(reset.closest(".flame-view").querySelector(".part"));
    const source = target.closest("[data-source]");
    if (source) showSource(source);
  }
  document.addEventListener("click", (event) => press(event.target));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hideSource();
      const view = event.target.closest && event.target.closest(".flame-view");
      if (view) zoomFlame(view.querySelector(".part"));
    }
    const button = event.target.getAttribute && event.target.getAttribute("role") === "button";
    if (button && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      press(event.target);
    }
  });

  // --- packed arrays ----------------------------------------------------------------------------
  function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream);
  }

  async function unpack(packed) {
    const length = packed.shape.reduce((a, b) => a * b, 1);
    const values = new Float64Array(length);
    if (!length) return values;
    const planes = new Uint8Array(await inflate(packed.data).arrayBuffer());
    const last = packed.shape[packed.shape.length - 1];
    const words = new DataView(new ArrayBuffer(8));
    for (let at = 0, sum = 0; at < length; at++) {
      for (let plane = 0; plane < 8; plane++) words.setUint8(plane, planes[plane * length + at]);
      const step = words.getInt32(4, true) * 4294967296 + words.getUint32(0, true);
      sum = at % last === 0 ? step : sum + step;
      values[at] = sum;
    }
    return values;
  }

  // --- the space-time diagram -------------------------------------------------------------------
  const AXIS = 20;
  const NAME = 12;
  const FONT = "11px system-ui, sans-serif";

  class Diagram {
    constructor(view) {
      this.view = view;
      this.canvas = view.querySelector("canvas");
      this.status = view.querySelector(".status");
      this.model = JSON.parse(document.getElementById(view.dataset.sourceOf).textContent);
      this.rows = this.model.rows;
      this.cell = null;
    }

    async load() {
      for (const strip of this.model.strips) {
        strip.at = await unpack(strip.edges);
        strip.counts = await unpack(strip.cycles);
        strip.why = await unpack(strip.causes);
        strip.bins = strip.at.length - 1;
        for (const one of strip.points) {
          one.indices = await unpack(one.points);
          one.values = one.values ? await inflate(one.values).json() : [];
        }
      }
      this.first = this.model.strips[0].first - 1;
      this.last = this.model.strips[0].last;
      this.from = this.first;
      this.to = this.last;
      this.listen();
      this.fit();
      this.view.dataset.ready = "yes";
      window.addEventListener("resize", () => this.fit());
      window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
      window.addEventListener("beforeprint", () => this.fit());
    }

    listen() {
      const canvas = this.canvas;
      for (const button of this.view.querySelectorAll("[data-strip]"))
        button.addEventListener("click", () => this.open(Number(button.dataset.strip)));
      for (const button of this.view.querySelectorAll("[data-move]"))
        button.addEventListener("click", () => this.move(button.dataset.move));
      canvas.addEventListener("pointermove", (event) => {
        if (this.held !== undefined && event.buttons & 1) {
          const moved = (this.held - event.offsetX) * this.perPixel();
          this.held = event.offsetX;
          this.show(this.from + moved, this.to + moved);
          return;
        }
        this.point(event.offsetX, event.offsetY);
      });
      canvas.addEventListener("pointerdown", (event) => {
        this.held = event.offsetX;
        this.point(event.offsetX, event.offsetY);
      });
      canvas.addEventListener("pointerup", () => { this.held = undefined; });
      canvas.addEventListener("dblclick", (event) => this.zoom(0.25, this.cycleAt(event.offsetX)));
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, this.cycleAt(event.offsetX));
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      if (event.key in steps) this.step(...steps[event.key]);
      else if (event.key === "+" || event.key === "=") this.move("in");
      else if (event.key === "-") this.move("out");
      else if (event.key === "PageUp") this.move("left");
      else if (event.key === "PageDown") this.move("right");
      else if (event.key === "Home") this.open(0);
      else return;
      event.preventDefault();
    }

    perPixel() { return (this.to - this.from) / Math.max(1, this.width - this.gutter); }
    cycleAt(x) { return this.from + (x - this.gutter) * this.perPixel(); }
    x(cycle) { return this.gutter + (cycle - this.from) / this.perPixel(); }

    open(number) {
      const strip = this.model.strips[number];
      this.show(strip.first - 1, strip.last);
      this.status.textContent =
        `${strip.name}: cycles ${count(strip.first)} to ${count(strip.last)}, ` +
        (strip.exact ? "cycle by cycle" : `${count(strip.bins)} bins`);
    }

    move(how) {
      const length = this.to - this.from;
      if (how === "in") this.zoom(0.5);
      if (how === "out") this.zoom(2);
      if (how === "left") this.show(this.from - length / 2, this.to - length / 2);
      if (how === "right") this.show(this.from + length / 2, this.to + length / 2);
      this.shown();
    }

    // Which cycles are in view; where they are in bins, how to see them one by one.
    shown() {
      const [first, last] = [Math.floor(this.from) + 1, Math.ceil(this.to)];
      const whole = (strip) => strip.first <= first && strip.last >= last;
      const strip = this.model.strips.find((one) => one.exact && whole(one)) || this.model.strips[0];
      let text = `cycles ${count(first)} to ${count(last)}`;
      const size = this.binSize(strip);
      if (strip.exact) text += ", cycle by cycle";
      else if (size > 1)
        text += `, in bins of ${count(Math.round(size))}: result.report(path, windows=[(${first}, ${last})]) ` +
          "has single cycles";
      this.status.textContent = text;
    }

    zoom(by, around) {
      const middle = around === undefined
        ? (this.cell ? this.cell.cycle : (this.from + this.to) / 2) : around;
      const from = middle - (middle - this.from) * by;
      this.show(from, from + (this.to - this.from) * by);
    }

    show(from, to) {
      const length = Math.min(this.last - this.first, Math.max(8, to - from));
      this.from = Math.max(this.first, Math.min(from, this.last - length));
      this.to = this.from + length;
      this.draw();
    }

    fit() {
      this.ratio = window.devicePixelRatio || 1;
      this.width = this.canvas.clientWidth;
      this.placeRows();
      this.height = this.tops[this.rows.length] + AXIS;
      this.canvas.style.height = `${this.height}px`;
      this.still = document.createElement("canvas");
      for (const canvas of [this.canvas, this.still]) {
        canvas.width = Math.round(this.width * this.ratio);
        canvas.height = Math.round(this.height * this.ratio);
      }
      this.ink = this.still.getContext("2d");
      this.ink.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.ink.font = FONT;
      const longest = Math.max(...this.model.nodes.map((name) => this.ink.measureText(name).width));
      this.gutter = Math.ceil(Math.min(longest + 10, Math.max(80, 0.18 * this.width)));
      this.draw();
    }

    // The rows of a node together are as high as its name, however many rows others have.
    placeRows() {
      const usual = Math.max(2, Math.min(18, Math.floor(420 / Math.max(1, this.rows.length))));
      const counts = new Map();
      for (const [node] of this.rows) counts.set(node, (counts.get(node) || 0) + 1);
      this.tops = [0];
      for (const [node] of this.rows)
        this.tops.push(this.tops.at(-1) + Math.max(usual, Math.ceil(NAME / counts.get(node))));
    }

    rowHeight(row) { return this.tops[row + 1] - this.tops[row]; }

    // The narrowest strip that has a cycle: exact windows are on top of the whole run.
    stripAt(cycle) {
      let best = this.model.strips[0];
      for (const strip of this.model.strips)
        if (cycle >= strip.first && cycle <= strip.last && this.binSize(strip) < this.binSize(best))
          best = strip;
      return best;
    }

    binSize(strip) { return (strip.last - strip.first + 1) / strip.bins; }

    binOf(strip, cycle) {
      let low = 0;
      let high = strip.bins - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (strip.at[middle + 1] >= cycle) high = middle;
        else low = middle + 1;
      }
      return low;
    }

    // Cycles of a row in a bin by state; idle is what is left.
    states(strip, row, bin) {
      const size = this.rows.length * strip.bins;
      const at = row * strip.bins + bin;
      const found = [0, 1, 2, 3].map((state) => strip.counts[state * size + at]);
      const all = (strip.at[bin + 1] - strip.at[bin]) * this.rows[row][2];
      return [...found, all - found.reduce((a, b) => a + b, 0)];
    }

    draw() {
      const ink = this.ink;
      const style = getComputedStyle(document.documentElement);
      const color = (name) => style.getPropertyValue(name).trim();
      const colors = [...COLORS, color("--idle")];
      ink.clearRect(0, 0, this.width, this.height);
      const strips = [...this.model.strips].sort((a, b) => this.binSize(b) - this.binSize(a));
      const seen = (strip) => this.binSize(strip) >= 2 * this.perPixel();
      for (const strip of strips)
        if (strip === this.model.strips[0] || seen(strip)) this.drawStrip(strip, colors, color("--page"));
      ink.fillStyle = color("--page");
      ink.fillRect(0, 0, this.gutter - 1, this.height);
      this.labels(color);
      this.axis(color);
      this.mark(color("--ink"));
    }

    // What does not change with the marked cell is drawn once.
    mark(color) {
      const ink = this.canvas.getContext("2d");
      ink.setTransform(1, 0, 0, 1, 0, 0);
      ink.clearRect(0, 0, this.canvas.width, this.canvas.height);
      ink.drawImage(this.still, 0, 0);
      ink.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      if (!this.cell) return;
      const x = this.x(this.cell.cycle - 1);
      const width = Math.max(2, this.x(this.cell.cycle) - x);
      ink.strokeStyle = color;
      if (x + width > this.gutter)
        ink.strokeRect(x, this.tops[this.cell.row] - 0.5, width, this.rowHeight(this.cell.row));
    }

    // On whole pixels of the screen, so that neighbors do not mix.
    snapped(x) {
      const inside = Math.max(this.gutter, Math.min(this.width, this.x(x)));
      return Math.round(inside * this.ratio) / this.ratio;
    }

    drawStrip(strip, colors, page) {
      if (strip.last <= this.from || strip.first - 1 >= this.to) return;
      const begin = this.binOf(strip, Math.max(strip.first, Math.floor(this.from) + 1));
      const end = this.binOf(strip, Math.min(strip.last, Math.ceil(this.to)));
      const gap = strip.exact && this.binSize(strip) > 5 * this.perPixel() ? 1 : 0;
      const start = this.snapped(strip.at[begin]);
      this.ink.fillStyle = page;
      this.ink.fillRect(start, 0, this.snapped(strip.at[end + 1]) - start, this.height - AXIS);
      for (let row = 0; row < this.rows.length; row++) {
        const height = this.rowHeight(row) - (this.rowHeight(row) > 3 ? 1 : 0);
        for (let bin = begin; bin <= end; bin++) {
          const left = this.snapped(strip.at[bin]);
          const right = this.snapped(strip.at[bin + 1]) - gap;
          const found = this.states(strip, row, bin);
          this.drawCell(left, this.tops[row], right - left, height, found, colors);
        }
      }
    }

    drawCell(x, y, width, height, found, colors) {
      const ink = this.ink;
      const all = found.reduce((a, b) => a + b, 0);
      if (!all || width <= 0) return;
      const most = found.indexOf(Math.max(...found));
      ink.fillStyle = colors[most];
      ink.fillRect(x, y, width, height);
      if (height < 5 || found[most] === all) return;
      let bottom = y + height;
      found.forEach((cycles, state) => {
        const part = (cycles / all) * height;
        ink.fillStyle = colors[state];
        ink.fillRect(x, bottom - part, width, part);
        bottom -= part;
      });
    }

    // The names of nodes beside their rows; one that has no room moves down, as far as its rows go.
    labels(color) {
      const ink = this.ink;
      const starts = [];
      this.rows.forEach(([node], row) => {
        if (!row || this.rows[row - 1][0] !== node) starts.push(row);
      });
      ink.fillStyle = color("--line");
      for (const row of starts)
        if (row) ink.fillRect(0, this.tops[row] - 0.5, this.width, 1);
      ink.font = FONT;
      ink.lineJoin = "round";
      ink.lineWidth = 3;
      ink.strokeStyle = color("--page");
      ink.fillStyle = color("--ink");
      let free = 0;
      starts.forEach((row, at) => {
        const end = this.tops[at + 1 < starts.length ? starts[at + 1] : this.rows.length];
        const y = Math.max(this.tops[row], free);
        if (y > this.tops[row] && y + 11 > end) return;
        free = y + 11;
        let name = this.model.nodes[this.rows[row][0]];
        while (name.length > 1 && ink.measureText(name).width > this.gutter - 8)
          name = `${name.replace("…", "").slice(0, -1)}…`;
        ink.strokeText(name, 2, y + 10);
        ink.fillText(name, 2, y + 10);
      });
    }

    // The first and the last cycle, and round ones between.
    axis(color) {
      const ink = this.ink;
      const y = this.height - 6;
      const begin = `cycle ${count(Math.floor(this.from) + 1)}`;
      const end = count(Math.ceil(this.to));
      ink.fillStyle = color("--faint");
      ink.fillText(begin, this.gutter, y);
      ink.fillText(end, this.width - ink.measureText(end).width - 2, y);
      const least = (this.to - this.from) / Math.max(1, (this.width - this.gutter) / 85);
      const ten = 10 ** Math.floor(Math.log10(Math.max(1, least)));
      const step = [1, 2, 5, 10].map((digit) => digit * ten).find((one) => one >= least) || 10 * ten;
      const from = this.gutter + ink.measureText(begin).width + 12;
      const to = this.width - ink.measureText(end).width - 14;
      for (let cycle = Math.ceil((this.from + 1) / step) * step; cycle <= this.to; cycle += step) {
        if (cycle === Math.floor(this.from) + 1 || cycle === Math.ceil(this.to)) continue;
        const middle = this.x(cycle - 0.5);
        const half = ink.measureText(count(cycle)).width / 2;
        if (middle - half < from || middle + half > to) continue;
        ink.fillRect(middle - 0.5, this.height - AXIS, 1, 4);
        ink.fillText(count(cycle), middle - half, y);
      }
    }

    point(x, y) {
      const row = this.tops.findLastIndex((top) => top <= y);
      const cycle = Math.floor(this.cycleAt(x)) + 1;
      if (row < 0 || row >= this.rows.length || x < this.gutter) return;
      this.select(row, cycle);
    }

    step(down, across) {
      if (!this.cell) { this.select(0, Math.floor(this.from) + 1); return; }
      const strip = this.stripAt(this.cell.cycle);
      const bin = this.binOf(strip, this.cell.cycle);
      let cycle = this.cell.cycle;
      if (across > 0) cycle = strip.at[bin + 1] + 1;
      if (across < 0) cycle = strip.at[bin];
      const row = Math.max(0, Math.min(this.rows.length - 1, this.cell.row + down));
      this.select(row, Math.max(this.first + 1, Math.min(this.last, cycle)));
      if (this.cell.cycle <= this.from || this.cell.cycle > this.to) {
        const half = (this.to - this.from) / 2;
        this.show(this.cell.cycle - half, this.cell.cycle + half);
      }
    }

    select(row, cycle) {
      if (cycle < this.first + 1 || cycle > this.last) return;
      this.cell = { row, cycle };
      this.status.textContent = this.describe(row, cycle);
      this.mark(getComputedStyle(document.documentElement).getPropertyValue("--ink").trim());
    }

    describe(row, cycle) {
      const strip = this.stripAt(cycle);
      const bin = this.binOf(strip, cycle);
      const found = this.states(strip, row, bin);
      const all = found.reduce((a, b) => a + b, 0);
      const first = strip.at[bin] + 1;
      const last = strip.at[bin + 1];
      const when = first === last ? `cycle ${count(first)}` : `cycles ${count(first)} to ${count(last)}`;
      const what = found
        .map((cycles, state) => [cycles, state])
        .filter(([cycles]) => cycles)
        .map(([cycles, state]) => (cycles === all ? STATES[state] : `${STATES[state]} ${share(cycles, all)}`));
      let text = `${this.rows[row][1]}, ${when}: ${what.join(", ")}`;
      const cause = strip.why[row * strip.bins + bin];
      if (cause === -2) text += ", for memory";
      if (cause >= 0) text += `, for ${this.model.channels[cause]}`;
      return text + this.firing(strip, row, bin, found[0]);
    }

    // What a PE fires in a cycle: the number of the firing, its loop indices, its values.
    firing(strip, row, bin, busy) {
      const size = strip.bins;
      let before = strip.before[row];
      for (let at = 0; at < bin; at++) before += strip.counts[row * size + at];
      if (!busy) return "";
      if (!strip.exact || this.rows[row][2] > 1) return `, ${count(busy)} firings`;
      let text = `, firing ${count(before + 1)}`;
      const found = strip.points.find((one) => one.node === this.rows[row][0]);
      if (!found) return text;
      let number = 0;
      for (let other = 0; other <= row; other++) {
        if (this.rows[other][0] !== found.node) continue;
        const end = other === row ? bin : size;
        for (let at = 0; at < end; at++) number += strip.counts[other * size + at];
      }
      const all = found.indices.length / found.loops.length;
      const at = found.loops.map((loop, n) => {
        const index = found.indices[n * all + number];
        return found.rules.length ? `rule ${found.rules[index]}` : `${loop} = ${count(index)}`;
      });
      text += ` (${at.join(", ")})`;
      if (found.values.length) text += `; ${found.values[number]}`;
      return text;
    }
  }

  const diagrams = [];
  for (const view of document.querySelectorAll(".space-time")) {
    const diagram = new Diagram(view);
    diagrams.push(diagram);
    diagram.load();
  }
  document.t2sDiagrams = diagrams;
})();
