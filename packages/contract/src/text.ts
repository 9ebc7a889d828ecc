/** What stands in place of a secret, in a stored record and in whatever is told. Read back, it is no secret. */
export const redacted = '<redacted>'

/** Text that Postgres can hold and that stays on its line: no lone surrogates, no control characters, no line breaks. */
export const isOneLine = (text: string): boolean => text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)

export const trimmed = (text: string): string => text.trim()
