// filled by the next commit
