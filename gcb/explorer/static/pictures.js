// A visitor's own pictures, cropped and scaled to the agent's resolution in the browser.

// Returns { png, text }: the picture as the agent sees it, in base64, and what was done to the file.
export async function readPicture(file, [height, width]) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  } catch {
    throw new Error(`${file.name} is not a picture that this browser can read.`);
  }
  const side = Math.min(bitmap.width, bitmap.height);
  const crop = [Math.floor((bitmap.width - side) / 2), Math.floor((bitmap.height - side) / 2), side, side];
  const exact = side === width && side === height;
  const scaling = exact ? {} : { resizeWidth: width, resizeHeight: height, resizeQuality: "high" };
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").drawImage(await createImageBitmap(bitmap, ...crop, scaling), 0, 0);
  const size = `${bitmap.width}×${bitmap.height}`;
  const cropped = bitmap.width === bitmap.height ? "" : "cropped to a square, ";
  const text = exact && !cropped ? `${file.name} (${size}), as it is` : `${file.name} (${size}), ${cropped}scaled to ${width}×${height}`;
  return { png: canvas.toDataURL("image/png").split(",")[1], text };
}
