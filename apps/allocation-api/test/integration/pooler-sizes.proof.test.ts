import './pooler-sizes.ci.test.ts'
