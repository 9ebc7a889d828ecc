export interface LineSplitter {
  push(chunk: string): void
  /** Emits the last line if no newline ended it. */
  end(): void
}

/**
 * Splits a stream into lines at LF or CRLF. A line longer than `maxLength` characters is truncated: its start is emitted
 * once the line ends, and the rest is not kept in memory.
 */
export const createLineSplitter = (
  maxLength: number,
  onLine: (line: string, isTruncated: boolean) => void,
): LineSplitter => {
  let buffer = ''
  let isTruncated = false
  const append = (text: string) => {
    const room = maxLength - buffer.length
    if (text.length > room) isTruncated = true
    buffer += text.length > room ? text.slice(0, room) : text
  }
  const emit = () => {
    const line = buffer.endsWith('\r') ? buffer.slice(0, -1) : buffer
    const wasTruncated = isTruncated
    buffer = ''
    isTruncated = false
    onLine(line, wasTruncated)
  }
  return {
    push: chunk => {
      for (const [index, text] of chunk.split('\n').entries()) {
        if (index > 0) emit()
        append(text)
      }
    },
    end: () => {
      if (buffer) emit()
    },
  }
}
