/** Odd, so that multiplying by it modulo 2^32 maps no two numbers to one. The golden ratio spreads neighbours far. */
const SPREAD = 0x9e37_79b1

/**
 * The label of the n-th name (0 to 2^32 - 1): each n another, and n and n + 1 far apart in the index, as names that
 * people choose are. Its form is a valid subdomain that is nowhere reserved.
 */
export const labelOf = (n: number): string => `t${(Math.imul(n, SPREAD) >>> 0).toString(16).padStart(8, '0')}`

/** The same in SQL, over an expression of type bigint. */
export const labelSql = (n: string): string => `'t' || lpad(to_hex((${n} * ${SPREAD}) & 4294967295), 8, '0')`
