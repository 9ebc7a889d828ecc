/** Quotes a word for a POSIX shell. */
export const quoteShellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

export interface CurlRequest {
  /** Of the operator's listener, without a path. */
  readonly origin: string
  /** JSON without the keys of the object storage. */
  readonly body: object
  readonly hasKeys: boolean
  /** That of the form: the request and the form create one deployment, not two. A challenge is for this key. */
  readonly idempotencyKey: string
}

/**
 * The request that creates a deployment, for bash. The operator token and the keys come from files and through pipes, so that
 * neither the history of the shell nor the list of processes has them. It needs jq if there are keys.
 */
export const renderCurl = ({ origin, body, hasKeys, idempotencyKey }: CurlRequest): string => {
  const json = quoteShellWord(JSON.stringify(body, null, 2))
  const data = hasKeys
    ? [
        '  --data-binary @<(jq --null-input \\',
        '    --rawfile access access-key --rawfile secret secret-key \\',
        `    ${json.slice(0, -1)} + {`,
        '  objectStorageAccessKey: $access,',
        '  objectStorageSecretKey: $secret',
        "}')",
      ]
    : [`  --data-binary ${json}`]
  return [
    `curl --silent --show-error ${quoteShellWord(`${origin}/api/v1/deployments`)} \\`,
    `  --header @<(printf 'Authorization: Bearer %s\\n' "$(cat operator-token)") \\`,
    "  --header 'Content-Type: application/json' \\",
    `  --header ${quoteShellWord(`Idempotency-Key: ${idempotencyKey}`)} \\`,
    ...data,
  ].join('\n')
}
