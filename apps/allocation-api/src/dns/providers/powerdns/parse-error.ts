import { ownerName } from './zone.ts'

/** Where the server's errors name the owner. Anchored: record content comes later in them and may hold any name. */
const namingErrors = [
  /^Record (\S+)\/\S+ '/,
  /^(?:Duplicate )?RRset (\S+) IN /,
  /^Duplicate record in RRset (\S+) IN /,
  /^(?:Unable to parse DNS Name|Name) '([^']+)'/,
]

/** The owner name that an error of the server is about; undefined: it does not say. */
export const parseOwner = (error: string): string | undefined => {
  const owner = namingErrors.map(pattern => pattern.exec(error)?.[1]).find(name => name !== undefined)
  return owner === undefined ? undefined : ownerName(owner)
}
