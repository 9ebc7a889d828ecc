import { crc32, deflateSync, inflateSync } from 'node:zlib'

// Screenshots of the console have few colours. With a palette they have about a third of the size of Chromium's.

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const MAX_COLOURS = 256
const COLOUR_TYPE_PALETTE = 3

interface Image {
  readonly width: number
  readonly height: number
  /** 0xRRGGBB, row by row. */
  readonly pixels: Uint32Array
}

/** The chunks of a PNG (W3C PNG, section 5.3), without their checksums. */
const readChunks = (png: Buffer): readonly { readonly type: string; readonly data: Buffer }[] => {
  const chunks: { type: string; data: Buffer }[] = []
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) })
    at += 12 + length
  }
  return chunks
}

const predictPaeth = (left: number, up: number, upLeft: number): number => {
  const estimate = left + up - upLeft
  const [toLeft, toUp, toUpLeft] = [Math.abs(estimate - left), Math.abs(estimate - up), Math.abs(estimate - upLeft)]
  if (toLeft <= toUp && toLeft <= toUpLeft) return left
  return toUp <= toUpLeft ? up : upLeft
}

/** Decodes an image of 8 bits per channel, which is not interlaced: what Chromium writes. */
const decode = (png: Buffer): Image => {
  const chunks = readChunks(png)
  const header = chunks.find(({ type }) => type === 'IHDR')?.data ?? Buffer.alloc(13)
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const channels = header[9] === 6 ? 4 : 3
  const raw = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)))
  const stride = width * channels
  const pixels = new Uint32Array(width * height)
  let previous = new Uint8Array(stride)
  for (let y = 0; y < height; y += 1) {
    const start = y * (stride + 1)
    const filter = raw[start]
    const row = new Uint8Array(raw.subarray(start + 1, start + 1 + stride))
    for (let x = 0; x < stride; x += 1) {
      const left = row[x - channels] ?? 0
      const up = previous[x] ?? 0
      const predicted = [0, left, up, (left + up) >> 1, predictPaeth(left, up, previous[x - channels] ?? 0)]
      row[x] = (row[x] ?? 0) + (predicted[filter ?? 0] ?? 0)
    }
    for (let x = 0; x < width; x += 1) {
      const [red = 0, green = 0, blue = 0] = row.subarray(x * channels, x * channels + 3)
      pixels[y * width + x] = (red << 16) | (green << 8) | blue
    }
    previous = row
  }
  return { width, height, pixels }
}

const measureDistance = (a: number, b: number): number => {
  const distances = [16, 8, 0].map(shift => ((a >> shift) & 0xff) - ((b >> shift) & 0xff))
  return distances.reduce((sum, distance) => sum + distance * distance, 0)
}

/** The most frequent colours, and for every colour of the image the nearest of them. */
const createPalette = (pixels: Uint32Array) => {
  const counts = new Map<number, number>()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const sorted = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour)
  const palette = sorted.slice(0, MAX_COLOURS)
  const findNearest = (colour: number) =>
    palette.reduce((best, candidate, index) => {
      const isNearer = measureDistance(candidate, colour) < measureDistance(palette[best] ?? 0, colour)
      return isNearer ? index : best
    }, 0)
  return {
    palette,
    indexes: new Map(sorted.map((colour, index) => [colour, index < MAX_COLOURS ? index : findNearest(colour)])),
  }
}

const formatChunk = (type: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}

/** Encodes a PNG again, with a palette of at most 256 colours. */
export const toPalettePng = (png: Buffer): Buffer => {
  const { width, height, pixels } = decode(png)
  const { palette, indexes } = createPalette(pixels)
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, COLOUR_TYPE_PALETTE], 8)
  // Every row begins with its filter, which is 0: none.
  const raw = Buffer.alloc((width + 1) * height)
  for (let at = 0; at < pixels.length; at += 1) {
    raw[at + Math.floor(at / width) + 1] = indexes.get(pixels[at] ?? 0) ?? 0
  }
  const colours = Buffer.from(palette.flatMap(colour => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]))
  return Buffer.concat([
    SIGNATURE,
    formatChunk('IHDR', header),
    formatChunk('PLTE', colours),
    formatChunk('IDAT', deflateSync(raw, { level: 9 })),
    formatChunk('IEND', Buffer.alloc(0)),
  ])
}
