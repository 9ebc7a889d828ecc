/** The text is not a JSON object with such an array, or one element is too large. */
export class JsonArrayError extends Error {}

/** Bytes of one element, and of everything outside the array. */
const MAX_PENDING_BYTES = 16 * 1_024 * 1_024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d]
const [OPEN_ARRAY, CLOSE_ARRAY] = [0x5b, 0x5d]

/**
 * Reads a JSON object that has a large array of objects as the value of `key`, without holding the array in memory.
 * `push` returns the elements that are complete now. `end` returns the object, with the array empty.
 */
export class JsonArraySplitter {
  readonly #key: string
  /** What is not returned yet; in the array, from the start of the first such element. */
  #pending: Buffer = Buffer.alloc(0)
  /** The next byte of `#pending` to look at. */
  #at = 0
  /** The text outside the array. */
  readonly #outside: Buffer[] = []
  #outsideBytes = 0
  #depth = 0
  #isInString = false
  #isEscaped = false
  #isInArray = false
  #stringStart = 0
  /** The last string of the object itself. */
  #lastString = ''
  #isArrayFound = false

  constructor(key: string) {
    this.#key = key
  }

  push(chunk: Uint8Array): unknown[] {
    this.#pending = Buffer.concat([this.#pending, chunk])
    const elements: unknown[] = []
    while (this.#at < this.#pending.length) {
      if (this.#isInArray) elements.push(...this.#readArray())
      else this.#readOutside()
    }
    if (this.#pending.length > MAX_PENDING_BYTES) throw new JsonArrayError('an element is too large')
    return elements
  }

  end(): unknown {
    const text = Buffer.concat([...this.#outside, this.#pending]).toString('utf8')
    if (!this.#isArrayFound || this.#isInArray) throw new JsonArrayError(`there is no array ${this.#key}`)
    return this.#parse(text)
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text)
    } catch {
      throw new JsonArrayError('it is not JSON')
    }
  }

  /** Looks at one byte; true if it is not in a string. */
  #isSyntax(byte: number): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (byte === BACKSLASH) this.#isEscaped = true
      else if (byte === QUOTE) this.#isInString = false
      return false
    }
    if (byte !== QUOTE) return true
    this.#isInString = true
    return false
  }

  /** Up to and including the start of the array. */
  #readOutside(): void {
    const bytes = this.#pending
    for (; this.#at < bytes.length; this.#at += 1) {
      const byte = bytes[this.#at] ?? 0
      const wasInString = this.#isInString
      if (this.#isSyntax(byte)) {
        if (byte === OPEN_ARRAY && this.#depth === 1 && this.#lastString === this.#key && !this.#isArrayFound) {
          this.#at += 1
          this.#isInArray = true
          this.#isArrayFound = true
          this.#keepOutside(this.#at)
          return
        }
        if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.#depth += 1
        else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) this.#depth -= 1
        else if (byte === COMMA) this.#lastString = ''
      } else if (!wasInString) this.#stringStart = this.#at + 1
      else if (!this.#isInString && this.#depth === 1) {
        this.#lastString = bytes.toString('utf8', this.#stringStart, this.#at)
      }
    }
    if (this.#outsideBytes + bytes.length > MAX_PENDING_BYTES) throw new JsonArrayError('it is too large')
  }

  #keepOutside(end: number): void {
    this.#outside.push(Buffer.from(this.#pending.subarray(0, end)))
    this.#outsideBytes += end
    this.#drop(end)
  }

  #drop(end: number): void {
    this.#pending = this.#pending.subarray(end)
    this.#at -= end
    this.#stringStart -= end
  }

  /** The complete elements, up to the end of the array or of the bytes. The state is in variables, for speed. */
  #readArray(): unknown[] {
    const bytes = this.#pending
    let [at, depth, isInString, isEscaped] = [this.#at, this.#depth, this.#isInString, this.#isEscaped]
    let end = 0
    for (; at < bytes.length; at += 1) {
      const byte = bytes[at]
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isInString = false
      } else if (byte === QUOTE) isInString = true
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (depth === 1) break
        depth -= 1
        if (depth === 1) end = at + 1
      }
    }
    this.#at = at
    this.#depth = depth
    this.#isInString = isInString
    this.#isEscaped = isEscaped
    // The comma before the first element remained from the last call.
    const text = bytes.toString('utf8', 0, end).replace(/^[\s,]+/, '')
    this.#drop(end)
    if (this.#at < this.#pending.length) {
      if (!/^[\s,]*$/.test(this.#pending.toString('utf8', 0, this.#at))) throw new JsonArrayError('it is not JSON')
      this.#isInArray = false
      this.#drop(this.#at)
      this.#at = 1
    }
    return text === '' ? [] : (this.#parse(`[${text}]`) as unknown[])
  }
}
