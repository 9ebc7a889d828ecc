import { Resolver } from 'node:dns/promises'

/** The addresses that the server on this port gives for the name, over UDP; `NXDOMAIN`, or another error's code. */
export const createDnsClient = (port: number, { tries = 4 }: { readonly tries?: number } = {}) => {
  const resolver = new Resolver({ timeout: 2_000, tries })
  resolver.setServers([`127.0.0.1:${port}`])
  return async (name: string): Promise<string[] | string> => {
    try {
      return (await resolver.resolve4(name)).sort()
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
      return code === 'ENOTFOUND' ? 'NXDOMAIN' : code
    }
  }
}
