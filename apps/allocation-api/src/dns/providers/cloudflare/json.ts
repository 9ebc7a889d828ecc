import { isJsonObject, type JsonObject } from '../../../lib/json.ts'

export const toList = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : []
export const toText = (value: unknown): string => (typeof value === 'string' ? value : '')
export const toNumber = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
