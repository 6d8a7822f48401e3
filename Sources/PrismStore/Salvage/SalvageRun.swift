import PrismBase
import PrismProtocol
import PrismSQLite

// The effects of a salvage on the store's health.
extension DatabaseFile {
  /// Does one slice. - Returns: whether there is more to do.
  func salvageSlice() throws(StoreError) -> Bool {
    guard let name = memory.state.salvage.files.first?.name else { return false }
    health.enter(.salvaging)
    let before = memory.state.salvage
    do {
      let folder = options.folder
      let saved = try write { (transaction) throws(SQLiteError) in
        try Salvage(transaction).bringOverSlice(folder: folder)
      }
      health.note { $0.salvagedRows += saved }
    } catch {
      if memory.state.salvage.files.first?.name == name { memory.state.salvage = before }
      throw error
    }
    let isDone = memory.state.salvage.files.isEmpty
    if isDone { endSalvage(before) }
    noteAwaited()
    return !isDone
  }

  /// - Parameter progress: before its last slice.
  private func endSalvage(_ progress: SalvageProgress) {
    let lost = memory.salvage.lostRows
    if lost == 0 && !progress.isLossy { SetAside(options).markSalvaged(progress.sources) }
    noteLeftBehind()
    memory.salvage.forgetFiles()
    memory.salvage.lostRows = 0
    health.note { $0.lostRows += lost }
    health.enter(.working)
    let (saved, lostInAll) = (health.current.salvagedRows, health.current.lostRows)
    let fields: Logger.Fields = ["saved": String(saved), "lost": String(lostInAll)]
    if lostInAll == 0 { return options.log.info("the damaged database was brought over completely", fields) }
    options.log.error("the whole rows were brought over; the rest counts as corrupt", fields)
  }

  /// Which set-aside databases hold reports that nothing brings over, for `status`.
  func noteLeftBehind() {
    let left = SetAside(options).leftBehind(besides: memory.state.salvage.files.map(\.name))
    if health.current.leftBehind != left { health.note { $0.leftBehind = left } }
  }

  /// How many rows are still to be brought over, for `status`.
  func noteAwaited() {
    let awaited = memory.state.salvage.awaited(memory.state.names)
    if health.current.awaited != awaited { health.note { $0.awaited = awaited } }
  }
}
