/// The end of what a program wrote, in the order in which it was read. The stream that writes much does not push out what
/// the other said: each keeps its half, and takes what the other does not use.
struct LastOutput {
  private struct Piece {
    let stream: Int32
    var bytes: ArraySlice<UInt8>
  }

  let bytesMax: Int
  private var pieces: [Piece] = []

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  var bytes: [UInt8] { pieces.flatMap(\.bytes) }

  mutating func append(_ chunk: ArraySlice<UInt8>, of stream: Int32) {
    pieces.append(Piece(stream: stream, bytes: chunk.suffix(bytesMax)))
    var excess = pieces.reduce(-bytesMax) { $0 + $1.bytes.count }
    for index in pieces.indices where excess > 0 {
      let dropped = min(excess, pieces[index].bytes.count, bytesOverHalf(of: pieces[index].stream))
      pieces[index].bytes.removeFirst(dropped)
      excess -= dropped
    }
    pieces.removeAll(where: \.bytes.isEmpty)
  }

  private func bytesOverHalf(of stream: Int32) -> Int {
    max(0, pieces.reduce(-bytesMax / 2) { $1.stream == stream ? $0 + $1.bytes.count : $0 })
  }
}
