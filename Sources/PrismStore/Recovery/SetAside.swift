import PrismBase
import PrismRecovery

/// Moves a database that can't be used out of the way, and back.
///
/// The file `prism.db.adopt` in the state folder names the move that is under way. After a kill between two steps, the
/// next start finishes the move. The file is removed once the new database records what it has to bring over, or once
/// the old one is back.
struct SetAside {
  /// How a file came to be set aside; part of its name.
  enum Cause: String {
    /// It holds reports that are not in the new database.
    case corrupt
    /// Not a database of the store's.
    case foreign
    /// Its reports are all in the new database.
    case salvaged
  }

  enum Direction: String {
    /// Away, because SQLite can't use it.
    case damaged
    /// Away, because starts died.
    case deaths
    /// Back in its place, where nothing is.
    case back
  }

  /// Older ones that hold nothing more are deleted when another is set aside.
  private static let filesMax = 3

  let place: DatabasePlace
  private let onMove: (@Sendable () -> Void)?
  private var intentPath: String { place.path + ".adopt" }

  init(_ options: StoreOptions) { (place, onMove) = (options.place, options.onMove) }

  /// The move that is under way; nil: nothing is being moved.
  func pending() -> (name: String, direction: Direction)? {
    guard let words = SideFile.text(intentPath)?.split(whereSeparator: \.isWhitespace).map({ String($0) }),
      let name = words.first, name.hasPrefix("prism.db."), !name.contains("/")
    else { return nil }
    return (name, words.dropFirst().first.flatMap { Direction(rawValue: $0) } ?? .damaged)
  }

  /// Moves the database away. - Returns: its new name, in the folder.
  func begin(_ cause: Cause, _ direction: Direction, unixMilliseconds: Int64) -> String {
    let name = place.freeName(cause.rawValue, unixMilliseconds: unixMilliseconds)
    note(name, direction)
    place.move(to: name)
    return name
  }

  private func note(_ name: String, _ direction: Direction) {
    SideFile.write("\(name) \(direction.rawValue)\n", to: intentPath)
    onMove?()
  }

  /// Puts a database back that was set aside. The one in its place is deleted: it holds nothing.
  func putBack(_ name: String) {
    // Before the intent says so: from then on a log beside the path is the one that was put back.
    place.remove(place.name)
    note(name, .back)
    finishBack(name)
  }

  /// Moves back what has not been moved yet. Again is harmless.
  func finishBack(_ name: String) {
    place.moveBack(name)
    done()
  }

  /// The new database knows all that it has to bring over, or the old one is back.
  func done() {
    SideFile.syncFolder(place.folder)
    SideFile.remove(intentPath)
    onMove?()
    SideFile.syncFolder(place.folder)
  }

  /// All reports of these are in the new database.
  func markSalvaged(_ names: [String]) {
    for name in names { place.rename(name, from: Cause.corrupt.rawValue, to: Cause.salvaged.rawValue) }
  }

  /// Notes, for `status`, which databases hold reports that nothing brings over. - Returns: these.
  @discardableResult func noteLeftBehind(_ salvage: SalvageProgress, _ health: HealthState) -> [String] {
    let left = place.aside(Cause.corrupt.rawValue).map(\.name).filter { !salvage.files.map(\.name).contains($0) }
    if health.current.leftBehind != left { health.note { $0.leftBehind = left } }
    return left
  }

  /// Deletes the oldest beyond `filesMax` of those that hold no report that is not in the new database.
  func prune() -> [String] {
    let old = place.aside(Cause.salvaged.rawValue, Cause.foreign.rawValue).dropLast(Self.filesMax).map(\.name)
    for name in old { place.remove(name) }
    return old
  }
}
