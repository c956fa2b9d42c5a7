// Moves of a hand with the mouse.

/** Drags from one place of an element to another; places are shares of its width and height. */
export async function drag(page, element, from, to, {shift = false} = {}) {
  const box = await element.boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  if (shift) await page.keyboard.down('Shift');
  await page.mouse.move(...at(from));
  await page.mouse.down();
  await page.mouse.move(...at(to), {steps: 4});
  await page.mouse.up();
  if (shift) await page.keyboard.up('Shift');
}
