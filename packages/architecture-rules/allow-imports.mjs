export const npm = name => `/node_modules/${name}/`
export const tests = '(\\.test\\.ts$|/test/)'

/** Files whose path matches `from` import only what matches one of `to`; what matches `types`, as types only. */
export const allowImports = (name, { from, to, types = [], comment }) => [
  {
    name,
    comment,
    severity: 'error',
    from: { path: from, pathNot: tests },
    to: { pathNot: [...to, ...types] },
  },
  ...(types.length === 0
    ? []
    : [
        {
          name: `${name}-types`,
          comment: `${comment} Some of it as types only.`,
          severity: 'error',
          from: { path: from, pathNot: tests },
          to: { path: types, pathNot: to, dependencyTypesNot: ['type-only'] },
        },
      ]),
]
