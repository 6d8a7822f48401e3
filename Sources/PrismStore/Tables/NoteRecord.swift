import PrismSQLite

/// A row of `notes`: a small value that is kept for a namespace.
struct NoteRecord: CheckedRecord {
  enum Column: String, SQLiteColumn { case namespace, key, value }

  let namespace: Int64
  let key: String
  let value: [UInt8]

  init?(_ row: some SQLiteValues<Column>) {
    guard let namespace = row.integer(.namespace), let key = row.string(.key), let value = row.data(.value) else {
      return nil
    }
    (self.namespace, self.key, self.value) = (namespace, key, value)
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([.namespace: namespace, .key: key, .value: value])
  }
}

extension NoteRecord {
  init(namespace: Int, key: String, value: [UInt8]) {
    (self.namespace, self.key, self.value) = (Int64(namespace), key, value)
  }
}
