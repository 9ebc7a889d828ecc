/**
 * Whose oldest wait ends so that `caller` can begin one where there is no room: that of the caller with the most waits, so that
 * no token takes the room of another one. Undefined: no caller has more than the new one would have, and it has none.
 * The oldest, because a host may not notice that a client has gone.
 */
export const findDisplaced = (counts: ReadonlyMap<string, number>, caller: string): string | undefined => {
  const own = counts.get(caller) ?? 0
  let [displaced, most] = [own > 0 ? caller : undefined, own + 1]
  for (const [name, count] of counts) if (count > most) [displaced, most] = [name, count]
  return displaced
}
