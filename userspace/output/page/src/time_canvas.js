// Draws the map and the lanes on canvases. Knows places and colours, and nothing of profiles.
import {interpolateLab} from 'd3-interpolate';
import {rectanglesOf} from './heat_map.js';

const SHADES = 64;
const EVENT_PX = 4;
const HUES = {
  light: {samples: '#1c5fa8', cpu: '#b4530a', pauses: '#b3261e', search: '#6a2fa0'},
  dark: {samples: '#7db9ee', cpu: '#ffb366', pauses: '#ff8a75', search: '#d2a8ff'},
};
const MARKS = {light: {range: '#0b63b5', base: '#a4520a', cursor: '#17191c'}, dark: {range: '#7db9ee', base: '#f0a35e', cursor: '#eceef1'}};

/** [r, g, b] of each shade, from none to the strongest. */
export function shadesOf(themeName, colour, paper) {
  const ramp = interpolateLab(paper, HUES[themeName][colour]);
  return Array.from({length: SHADES}, (_, i) => ramp(i === 0 ? 0 : 0.12 + (0.88 * i) / (SHADES - 1)).match(/\d+/g).map(Number));
}

/** Fits a canvas to its box. @returns {{context, width, height}} in CSS pixels; null: it has no size */
export function fitCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (width <= 0 || height <= 0) return null;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d', {alpha: false});
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {context, width, height};
}

/** The cells as a picture with a pixel for each. */
export function pictureOf(grid, values, strongest, shades) {
  const picture = new OffscreenCanvas(grid.columns, grid.rows), context = picture.getContext('2d');
  const image = context.createImageData(grid.columns, grid.rows);
  for (let i = 0; i < values.length; ++i) {
    const shade = values[i] > 0 ? Math.max(1, Math.min(SHADES - 1, Math.round((values[i] / strongest) * (SHADES - 1)))) : 0;
    const at = 4 * ((i % grid.rows) * grid.columns + Math.floor(i / grid.rows));
    [image.data[at], image.data[at + 1], image.data[at + 2]] = shades[shade];
    image.data[at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return picture;
}

/** @param {{range, base, cursor}} marks  cursor: a cell, or -1 */
export function drawMap({context, width, height}, grid, picture, marks, themeName, paper) {
  context.fillStyle = paper;
  context.fillRect(0, 0, width, height);
  context.imageSmoothingEnabled = width < grid.columns || height < grid.rows;
  context.imageSmoothingQuality = 'high';
  context.drawImage(picture, 0, 0, width, height);
  const w = width / grid.columns, h = height / grid.rows, colors = MARKS[themeName];
  const boxes = (range) => (range ? rectanglesOf(grid, range).map((box) => [box.column * w, box.row * h, box.columns * w, box.rows * h]) : []);
  const range = boxes(marks.range), base = boxes(marks.base);
  if (range.length + base.length > 0) shadeOthers(context, width, height, [...range, ...base], paper);
  outline(context, base, colors.base, [5, 3]);
  outline(context, range, colors.range, []);
  if (marks.cursor >= 0) {
    const x = Math.floor(marks.cursor / grid.rows) * w, y = (marks.cursor % grid.rows) * h;
    context.strokeStyle = colors.cursor;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, Math.max(4, w + 2), Math.max(4, h + 2));
  }
}

function shadeOthers(context, width, height, boxes, paper) {
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  for (const box of boxes) context.rect(...box);
  context.clip('evenodd');
  context.globalAlpha = 0.55;
  context.fillStyle = paper;
  context.fillRect(0, 0, width, height);
  context.restore();
}

function outline(context, boxes, color, dashes) {
  context.save();
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.setLineDash(dashes);
  for (const [x, y, w, h] of boxes) context.strokeRect(x, y, Math.max(1, w), Math.max(1, h));
  context.restore();
}

/**
 * Lanes, one below the other, as a picture for drawLanes.
 * @param {{width: number, height: number}} size  in CSS pixels
 * @param {Float64Array[]} lanes  of each column the weight by kind
 * @param {number} full  weight that fills a column
 * @param {string[]} colors  by kind
 * @param {Object<string, Float64Array>[]} events  of each lane: by their kind the share of each column
 */
export function lanesPicture({width, height}, lanes, {laneHeight, full, colors, events, eventColors, theme}) {
  const ratio = devicePixelRatio || 1, picture = new OffscreenCanvas(Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio)));
  const context = picture.getContext('2d', {alpha: false});
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const kinds = colors.length, columns = lanes.length > 0 ? lanes[0].length / kinds : 0, w = width / Math.max(1, columns);
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, laneHeight * lanes.length);
  lanes.forEach((lane, at) => {
    const bottom = (at + 1) * laneHeight - 2, room = laneHeight - 3;
    context.fillStyle = theme.muted;
    context.fillRect(0, bottom, width, 1);
    for (let column = 0; column < columns; ++column) {
      let all = 0;
      for (let kind = 0; kind < kinds; ++kind) all += lane[column * kinds + kind];
      if (all === 0) continue;
      const scale = room / Math.max(full, all);
      for (let kind = kinds - 1, y = bottom; kind >= 0; --kind) {
        const weight = lane[column * kinds + kind];
        if (weight === 0) continue;
        const h = Math.max(1, weight * scale);
        context.fillStyle = colors[kind];
        context.fillRect(column * w, y - h, Math.ceil(w * 10) / 10, h);
        y -= h;
      }
    }
    for (const [kind, shares] of Object.entries(events[at])) {
      context.fillStyle = eventColors[kind];
      shares.forEach((share, column) => {
        if (share === 0) return;
        context.globalAlpha = Math.min(1, 0.15 + Math.sqrt(share));
        context.fillRect(column * w, bottom - room, Math.ceil(w * 10) / 10, EVENT_PX);
      });
      context.globalAlpha = 1;
    }
  });
  return picture;
}

/** @param {{from: number, to: number, color: string}[]} marks  as shares of the width */
export function drawLanes({context, width, height}, picture, marks) {
  context.drawImage(picture, 0, 0, width, height);
  for (const {from, to, color} of marks) {
    context.globalAlpha = 0.18;
    context.fillStyle = color;
    context.fillRect(from * width, 0, (to - from) * width, height);
    context.globalAlpha = 1;
    context.fillRect(from * width - 1, 0, 2, height);
    context.fillRect(to * width - 1, 0, 2, height);
  }
}

export const markColor = (themeName, what) => MARKS[themeName][what];
