import './name-search.test.ts'
