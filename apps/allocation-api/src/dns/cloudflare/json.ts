export type Json = Readonly<Record<string, unknown>>

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isJson) : [])
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
