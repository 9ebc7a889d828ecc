import { open } from 'node:fs/promises'

/** No more than this is read from a log's end. */
const TAIL_BYTES = 16_384

export async function lastLines(path: string, lines: number, fromByte = 0): Promise<string> {
  const file = await open(path).catch(() => undefined)
  if (file === undefined) return ''
  try {
    const { size } = await file.stat()
    const start = Math.max(fromByte, size - TAIL_BYTES, 0)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(size - start, 0)), { position: start })
    return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-lines).join('\n')
  } finally {
    await file.close()
  }
}
