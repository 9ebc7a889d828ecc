interface ListenTarget {
  /** The environment variable of the port. */
  readonly variable: string
  readonly port: number
  /** The environment variable of the address; absent: it cannot be set. */
  readonly addressVariable?: string
}

/** What an operator does about a port or an address that a server cannot bind to. */
export const toListenError = (
  error: NodeJS.ErrnoException,
  { variable, port, addressVariable = variable }: ListenTarget,
): Error => {
  const code = error.code ?? error.name
  if (code === 'EADDRINUSE') {
    return new Error(
      `${variable}: port ${port} is in use; stop the process that has it, or set another port in ${variable} (${code})`,
    )
  }
  if (code === 'EADDRNOTAVAIL') {
    return new Error(`${addressVariable}: this machine does not have the address; correct ${addressVariable} (${code})`)
  }
  if (code === 'EACCES') {
    return new Error(
      `${variable}: only root may listen on port ${port}; set a port from 1024 on in ${variable}, or permit it (CAP_NET_BIND_SERVICE) (${code})`,
    )
  }
  return new Error(`${variable}: cannot listen on port ${port}; correct ${variable} (${code})`)
}
