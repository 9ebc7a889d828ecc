import type { FlagSpec } from '../command.ts'
import { UsageError } from '../exit-codes.ts'

/** Flags that several commands have. */

export const yesFlag: FlagSpec = { flags: '-y, --yes', description: 'do not ask for confirmation' }
export const dryRunFlag: FlagSpec = { flags: '--dry-run', description: 'list the changes only' }
export const NOTHING_CHANGED = 'Dry run: nothing was changed.'
export const limitFlag: FlagSpec = { flags: '--limit <count>', description: 'list at most so many items' }

/** The text of a flag, if it was given. */
export const toText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const toTexts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : [])

/** The text of a flag that must not be empty. */
export const toRequiredText = (value: unknown, flag: string): string => {
  const text = toText(value)?.trim()
  if (!text) throw new UsageError(`${flag} must not be empty.`)
  return text
}

/** The first items of a sequence. It reads no further than needed. */
export async function* take<Item>(items: AsyncIterable<Item>, limit: number | undefined): AsyncGenerator<Item, void> {
  let count = 0
  if (limit === 0) return
  for await (const item of items) {
    yield item
    count += 1
    if (count === limit) return
  }
}
