import { Resolver } from 'node:dns/promises'

/** The addresses that the server on this port gives for the name, over UDP; `NXDOMAIN`, or another error's code. */
export const createDnsClient = (
  port: number,
  { tries = 4, timeoutMs = 2_000 }: { readonly tries?: number; readonly timeoutMs?: number } = {},
) => {
  const resolver = new Resolver({ timeout: timeoutMs, tries })
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
