import * as z from 'zod'

/** RFC 3339 in UTC with `Z` and milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: '2026-01-31T12:00:00.000Z' })
