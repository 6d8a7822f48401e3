import CSQLite

extension SQLiteConnection {
  /// Defines a function of two whole numbers for the statements of this connection.
  /// - Parameter body: may run other statements on the connection. NULL is 0.
  public func define(_ name: String, _ body: @escaping (Int64, Int64) -> SQLValue) throws(SQLiteError) {
    let box = Unmanaged.passRetained(FunctionBox(body))
    let code = sqlite3_create_function_v2(
      handle, name, 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, box.toOpaque(),
      { context, _, values in
        guard let values, let box = sqlite3_user_data(context) else { return }
        let function = Unmanaged<FunctionBox>.fromOpaque(box).takeUnretainedValue()
        switch function.body(sqlite3_value_int64(values[0]), sqlite3_value_int64(values[1])) {
        case .null, .blob: sqlite3_result_null(context)
        case .integer(let value): sqlite3_result_int64(context, value)
        case .real(let value): sqlite3_result_double(context, value)
        case .text(let bytes):
          bytes.withUnsafeBytes { bytes in
            // A nil pointer would be NULL.
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) ?? UnsafePointer(bitPattern: 1)
            prism_sqlite3_result_text_copy(context, start, Int32(bytes.count))
          }
        }
      }, nil, nil, { box in if let box { Unmanaged<FunctionBox>.fromOpaque(box).release() } })
    guard code == SQLITE_OK else { throw SQLiteError(handle, sql: "define \(name)") }  // the box is released
  }
}

private final class FunctionBox {
  let body: (Int64, Int64) -> SQLValue
  init(_ body: @escaping (Int64, Int64) -> SQLValue) { self.body = body }
}
