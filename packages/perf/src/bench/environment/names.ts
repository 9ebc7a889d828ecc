export const POOL = 'pool.test'

/** Odd, so that multiplying by it modulo 2^32 is a bijection. The golden ratio spreads neighbours far. */
const SPREAD = 0x9e37_79b1

/**
 * The label of the n-th name (0 to 2^32 - 1). Labels are unique, and n and n + 1 are far apart in the index, as names that
 * people choose are. Each is a valid subdomain that is not reserved.
 */
export const toLabel = (n: number): string => `t${(Math.imul(n, SPREAD) >>> 0).toString(16).padStart(8, '0')}`

/** The same in SQL, for an expression of type bigint. */
export const toLabelSql = (n: string): string => `'t' || lpad(to_hex((${n} * ${SPREAD}) & 4294967295), 8, '0')`
