const HEX = 16
const SUFFIX_DIGITS = 8
const SUFFIXES = HEX ** SUFFIX_DIGITS

/** The suffixes of a process are consecutive, so it recognizes its identities without a list. The first one is random. */
let firstSuffix = 0
let created = 0

/** A holder name that is unique to this process start: `<name>_<8 hex digits>`. Do not give it to another process. */
export const createIdentity = (name: string): string => {
  // Not when the module is loaded: a Worker has no random numbers then.
  if (created === 0) [firstSuffix = 0] = crypto.getRandomValues(new Uint32Array(1))
  const suffix = (firstSuffix + created) % SUFFIXES
  created += 1
  return `${name}_${suffix.toString(HEX).padStart(SUFFIX_DIGITS, '0')}`
}

/** Whether `createIdentity` made the name in this process. Another process can have any other name too. */
export const isCreatedHere = (identity: string): boolean => {
  const suffix = Number.parseInt(identity.slice(-SUFFIX_DIGITS), HEX)
  return (suffix - firstSuffix + SUFFIXES) % SUFFIXES < created
}
