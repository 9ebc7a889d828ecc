/** The variables with which a test of the hardened installation runs the tests of clients again; none in their own run. */
export const hardenedEnv: Readonly<Record<string, string>> = JSON.parse(process.env.HARDENED_API_ENV ?? '{}')
