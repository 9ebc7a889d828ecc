import { Resolver } from 'node:dns/promises'

/** The addresses of a name in the zone; none if the name does not exist. */
export const lookUp = async (server: string, name: string): Promise<readonly string[]> => {
  const resolver = new Resolver({ timeout: 5_000, tries: 3 })
  resolver.setServers([server])
  return resolver.resolve4(name).catch(error => {
    if (error.code === 'ENOTFOUND' || error.code === 'ENODATA') return []
    throw error
  })
}
