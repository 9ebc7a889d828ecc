import * as z from 'zod'

/** RFC 3339 in UTC with `Z` and milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: '2026-01-31T12:00:00.000Z' })

/** Replaces a secret in stored records, logs and messages. It is not accepted as a secret. */
export const redacted = '<redacted>'

/** Text that Postgres can store and that stays on one line: no lone surrogates, control characters or line breaks. */
export const isOneLine = (text: string): boolean => text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)

export const trim = (text: string): string => text.trim()
