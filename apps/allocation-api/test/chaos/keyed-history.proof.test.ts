import './keyed-history.ci.test.ts'
