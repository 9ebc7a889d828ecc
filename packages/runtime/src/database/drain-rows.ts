/**
 * Moves the rows out of the driver's result array. The driver keeps results alive until V8's next major garbage
 * collection, so streaming a large zone would otherwise accumulate them.
 */
export const drainRows = <Row>(result: Row[]): Row[] => result.splice(0)
