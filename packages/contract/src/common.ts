import * as z from 'zod'

/** RFC 3339 in UTC with `Z` and milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: '2026-01-31T12:00:00.000Z' })

/** Replaces a secret in stored records, logs and messages. It is not accepted as a secret. */
export const redacted = '<redacted>'

/** Text that Postgres can store and that stays on one line: no lone surrogates, control characters or line breaks. */
export const isOneLine = (text: string): boolean => text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)

/** Characters that change the direction of text (Unicode UAX 9), so that a name looks like another one. */
const DIRECTION_CONTROL = /[\u202a-\u202e\u2066-\u2069]/

/** Such text that a person reads as it is stored. */
export const isPlainLine = (text: string): boolean => isOneLine(text) && !DIRECTION_CONTROL.test(text)

export const trim = (text: string): string => text.trim()

/** The control characters (Unicode category Cc), for the brackets of a pattern. */
const CONTROL = '\\x00-\\x1f\\x7f-\\x9f'

/** Text that Postgres can store. */
export const WITHOUT_NULL = '[^\\x00]*'

/** Text without control characters. */
export const ONE_LINE = `[^${CONTROL}]*`

/** Text without control characters that begins and ends with a character that is not white space. */
export const TRIMMED_LINE = `[^${CONTROL}\\s](?:[^${CONTROL}]*[^${CONTROL}\\s])?`

/**
 * At most `maximum` characters, counted as Unicode code points, as `maxLength` of JSON Schema counts them. zod's own check
 * counts UTF-16 code units.
 */
export const maxCharacters = (maximum: number, params?: Parameters<typeof z.refine>[1]): z.core.$ZodCheck<string> => {
  const check = z.refine<string>(text => [...text].length <= maximum, params)
  check._zod.onattach.push(schema => Object.assign(schema._zod.bag, { maximum }))
  return check
}

/** A whole number in a query. `params` is the error for any other text. */
export const wholeNumberText = (minimum: number, maximum: number, params?: Parameters<typeof z.refine>[1]) => {
  const digits = new RegExp(`^[0-9]{1,${String(maximum).length}}$`)
  return z
    .string()
    .refine(text => digits.test(text) && Number(text) >= minimum && Number(text) <= maximum, params)
    .transform(Number)
    .meta({ type: 'integer', minimum, maximum })
}
