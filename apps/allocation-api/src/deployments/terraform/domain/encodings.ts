const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0')

const json = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Each UTF-16 unit that `which` finds, as `\uXXXX`. */
const unicode = (text: string, which: RegExp): string => text.replace(which, unit => `\\u${hex(unit.charCodeAt(0), 4)}`)

/** RFC 8259 lets an encoder choose; Go's, and so Terraform's `jsonencode`, does not leave <, > and & as they are. */
const jsons = (text: string): string[] => {
  const plain = json(text)
  const go = unicode(plain, /[<>&\u2028\u2029]/g)
  return [plain, go, unicode(plain, /[^ -~]/g), unicode(go, /[^ -~]/g), plain.replaceAll('/', '\\/')]
}

/** What encoders leave as it is: RFC 3986, encodeURIComponent, encodeURI, Python's quote, Go's PathEscape, HTML forms. */
const unescaped = [/[\w.~-]/, /[\w.~!*'()-]/, /[\w.~!*'();/?:@&=+$,#-]/, /[\w.~/-]/, /[\w.~$&+=:@-]/, /[\w.*-]/]

const percent = (text: string): string[] =>
  unescaped.flatMap(kept => {
    const bytes = [...Buffer.from(text)].map(byte => {
      const letter = String.fromCharCode(byte)
      return byte < 128 && kept.test(letter) ? letter : `%${hex(byte, 2)}`
    })
    const lower = bytes.join('')
    const upper = bytes.map(byte => (byte.length === 3 ? byte.toUpperCase() : byte)).join('')
    return [lower, upper, lower.replaceAll('%20', '+'), upper.replaceAll('%20', '+')]
  })

const html = (text: string): string[] =>
  ['&quot;', '&#34;', '&#x22;', '"'].flatMap(quote =>
    ['&#39;', '&#x27;', '&#039;', '&apos;', "'"].map(apostrophe =>
      text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
        .replaceAll('"', quote)
        .replaceAll("'", apostrophe),
    ),
  )

/** The template sequences of HCL's strings: https://developer.hashicorp.com/terraform/language/expressions/strings */
const hcl = (text: string): string[] => {
  const literal = text.replace(/[$%](?=\{)/g, '$&$&')
  return [literal, ...jsons(literal)]
}

const shell = (text: string): string[] => [
  text.replaceAll("'", "'\\''"),
  text.replaceAll("'", `'"'"'`),
  text.replace(/["$`\\]/g, '\\$&'),
  text.replace(/["$`\\!]/g, '\\$&'),
  text.replace(/[\\']/g, '\\$&'),
  text.replace(/[^\w.,:+/@%=-]/g, '\\$&'),
  text.replace(/[^\w.:+/@%=-]/g, '\\$&'),
]

/**
 * What all texts that contain this one have in common in base64 (RFC 4648), plain and URL-safe: it depends on where it
 * starts, modulo 3. With what the end looks like when nothing follows.
 */
const base64s = (text: string): string[] => {
  const bytes = Buffer.from(text)
  const found = [0, 1, 2].flatMap(before => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const inside = encoded.slice([0, 2, 3][before])
    const open = encoded.slice([0, 2, 3][before], Math.floor(((before + bytes.length) * 4) / 3))
    return [open, inside.replace(/=+$/, ''), inside]
  })
  const safe = found.map(each => each.replaceAll('+', '-').replaceAll('/', '_'))
  return [...found, ...safe, ...found.flatMap(percent)]
}

/** The ways in which a text can turn up in the output of programs that quote, escape or encode it. */
export const spellings = (text: string): readonly string[] => [
  ...new Set([
    text,
    ...jsons(text),
    ...jsons(text).flatMap(jsons),
    ...percent(text),
    ...html(text),
    ...hcl(text),
    ...shell(text),
    ...base64s(text),
  ]),
]
