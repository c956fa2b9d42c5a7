// The data that the page carries: deflated (zlib), in base64.

/** @param {string} base64  @returns {Promise<Uint8Array>} */
export async function inflate(base64) {
  const inflated = new Blob([bytesOf(base64.trim())]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
