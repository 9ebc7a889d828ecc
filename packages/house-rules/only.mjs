export const contract = '^packages/contract/src/'
export const npm = name => `/node_modules/${name}/`
export const tests = '(\\.test\\.ts$|/test/)'

/** Files of `from` import only what `to` matches; `typesFrom` may be imported as types besides. */
export const only = (name, from, to, comment, typesFrom = []) => [
  {
    name,
    comment,
    severity: 'error',
    from: { path: from, pathNot: tests },
    to: { pathNot: [...to, ...typesFrom] },
  },
  ...(typesFrom.length === 0
    ? []
    : [
        {
          name: `${name}-types`,
          comment: `${comment} Those it may name as types only.`,
          severity: 'error',
          from: { path: from, pathNot: tests },
          to: { path: typesFrom, pathNot: to, dependencyTypesNot: ['type-only'] },
        },
      ]),
]
