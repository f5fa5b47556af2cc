Creator "tests/data/make.py"
graph [
  directed 1
  node [
    id 1
    label "anchor.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 2
    label "anchor.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 3
    label "anchor.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 4
    label "anchor.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 5
    label "anchor.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 6
    label "anchor.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 7
    label "anchor.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 8
    label "anchor.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 9
    label "anchor.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 10
    label "anchor.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 11
    label "anchor.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 12
    label "anchor.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 13
    label "anchor.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 14
    label "anchor.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 15
    label "basket.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 16
    label "basket.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 17
    label "basket.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 18
    label "basket.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 19
    label "basket.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 20
    label "basket.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 21
    label "basket.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 22
    label "basket.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 23
    label "basket.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 24
    label "basket.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 25
    label "basket.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 26
    label "basket.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 27
    label "basket.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 28
    label "basket.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 29
    label "candle.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 30
    label "candle.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 31
    label "candle.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 32
    label "candle.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 33
    label "candle.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 34
    label "candle.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 35
    label "candle.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 36
    label "candle.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 37
    label "candle.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 38
    label "candle.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 39
    label "candle.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 40
    label "candle.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 41
    label "candle.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 42
    label "candle.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 43
    label "copper.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 44
    label "copper.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 45
    label "copper.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 46
    label "copper.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 47
    label "copper.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 48
    label "copper.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 49
    label "copper.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 50
    label "copper.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 51
    label "copper.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 52
    label "copper.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 53
    label "copper.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 54
    label "copper.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 55
    label "copper.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 56
    label "copper.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 57
    label "garden.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 58
    label "garden.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 59
    label "garden.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 60
    label "garden.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 61
    label "garden.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 62
    label "garden.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 63
    label "garden.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 64
    label "garden.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 65
    label "garden.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 66
    label "garden.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 67
    label "garden.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 68
    label "garden.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 69
    label "garden.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 70
    label "garden.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 71
    label "harbour.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 72
    label "harbour.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 73
    label "harbour.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 74
    label "harbour.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 75
    label "harbour.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 76
    label "harbour.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 77
    label "harbour.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 78
    label "harbour.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 79
    label "harbour.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 80
    label "harbour.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 81
    label "harbour.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 82
    label "harbour.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 83
    label "harbour.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 84
    label "harbour.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 85
    label "lantern.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 86
    label "lantern.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 87
    label "lantern.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 88
    label "lantern.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 89
    label "lantern.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 90
    label "lantern.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 91
    label "lantern.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 92
    label "lantern.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 93
    label "lantern.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 94
    label "lantern.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 95
    label "lantern.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 96
    label "lantern.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 97
    label "lantern.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 98
    label "lantern.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 99
    label "marble.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 100
    label "marble.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 101
    label "marble.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 102
    label "marble.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 103
    label "marble.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 104
    label "marble.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 105
    label "marble.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 106
    label "marble.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 107
    label "marble.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 108
    label "marble.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 109
    label "marble.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 110
    label "marble.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 111
    label "marble.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 112
    label "marble.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 113
    label "meadow.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 114
    label "meadow.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 115
    label "meadow.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 116
    label "meadow.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 117
    label "meadow.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 118
    label "meadow.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 119
    label "meadow.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 120
    label "meadow.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 121
    label "meadow.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 122
    label "meadow.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 123
    label "meadow.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 124
    label "meadow.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 125
    label "meadow.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 126
    label "meadow.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 127
    label "pepper.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 128
    label "pepper.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 129
    label "pepper.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 130
    label "pepper.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 131
    label "pepper.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 132
    label "pepper.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 133
    label "pepper.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 134
    label "pepper.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 135
    label "pepper.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 136
    label "pepper.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 137
    label "pepper.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 138
    label "pepper.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 139
    label "pepper.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 140
    label "pepper.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 141
    label "saddle.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 142
    label "saddle.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 143
    label "saddle.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 144
    label "saddle.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 145
    label "saddle.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 146
    label "saddle.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 147
    label "saddle.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 148
    label "saddle.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 149
    label "saddle.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 150
    label "saddle.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 151
    label "saddle.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 152
    label "saddle.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 153
    label "saddle.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 154
    label "saddle.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 155
    label "timber.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 156
    label "timber.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 157
    label "timber.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 158
    label "timber.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 159
    label "timber.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 160
    label "timber.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 161
    label "timber.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 162
    label "timber.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 163
    label "timber.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 164
    label "timber.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 165
    label "timber.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 166
    label "timber.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 167
    label "timber.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 168
    label "timber.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 169
    label "velvet.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 170
    label "velvet.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 171
    label "velvet.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 172
    label "velvet.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 173
    label "velvet.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 174
    label "velvet.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 175
    label "velvet.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 176
    label "velvet.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 177
    label "velvet.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 178
    label "velvet.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 179
    label "velvet.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 180
    label "velvet.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 181
    label "velvet.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 182
    label "velvet.willow.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 183
    label "willow.anchor.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 184
    label "willow.basket.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 185
    label "willow.candle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 186
    label "willow.copper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 187
    label "willow.garden.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 188
    label "willow.harbour.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 189
    label "willow.lantern.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 190
    label "willow.marble.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 191
    label "willow.meadow.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 192
    label "willow.pepper.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 193
    label "willow.saddle.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 194
    label "willow.timber.example"
    value 1
    source "Lists,More"
  ]
  node [
    id 195
    label "willow.velvet.example"
    value 0
    source "Lists,More"
  ]
  node [
    id 196
    label "willow.willow.example"
    value 1
    source "Lists,More"
  ]
  edge [
    source 1
    target 4
  ]
  edge [
    source 1
    target 58
  ]
  edge [
    source 1
    target 69
  ]
  edge [
    source 1
    target 102
  ]
  edge [
    source 2
    target 1
  ]
  edge [
    source 2
    target 7
  ]
  edge [
    source 2
    target 157
  ]
  edge [
    source 2
    target 158
  ]
  edge [
    source 2
    target 159
  ]
  edge [
    source 2
    target 160
  ]
  edge [
    source 3
    target 2
  ]
  edge [
    source 3
    target 4
  ]
  edge [
    source 3
    target 58
  ]
  edge [
    source 3
    target 69
  ]
  edge [
    source 3
    target 102
  ]
  edge [
    source 5
    target 1
  ]
  edge [
    source 5
    target 6
  ]
  edge [
    source 5
    target 28
  ]
  edge [
    source 5
    target 35
  ]
  edge [
    source 7
    target 58
  ]
  edge [
    source 7
    target 69
  ]
  edge [
    source 7
    target 102
  ]
  edge [
    source 10
    target 15
  ]
  edge [
    source 10
    target 50
  ]
  edge [
    source 10
    target 51
  ]
  edge [
    source 10
    target 52
  ]
  edge [
    source 10
    target 53
  ]
  edge [
    source 10
    target 54
  ]
  edge [
    source 10
    target 55
  ]
  edge [
    source 10
    target 56
  ]
  edge [
    source 10
    target 57
  ]
  edge [
    source 10
    target 101
  ]
  edge [
    source 10
    target 195
  ]
  edge [
    source 11
    target 1
  ]
  edge [
    source 12
    target 58
  ]
  edge [
    source 12
    target 69
  ]
  edge [
    source 12
    target 102
  ]
  edge [
    source 14
    target 1
  ]
  edge [
    source 14
    target 15
  ]
  edge [
    source 15
    target 6
  ]
  edge [
    source 15
    target 86
  ]
  edge [
    source 16
    target 1
  ]
  edge [
    source 16
    target 6
  ]
  edge [
    source 16
    target 15
  ]
  edge [
    source 16
    target 54
  ]
  edge [
    source 16
    target 55
  ]
  edge [
    source 16
    target 56
  ]
  edge [
    source 16
    target 57
  ]
  edge [
    source 16
    target 58
  ]
  edge [
    source 16
    target 59
  ]
  edge [
    source 16
    target 60
  ]
  edge [
    source 16
    target 61
  ]
  edge [
    source 16
    target 62
  ]
  edge [
    source 16
    target 63
  ]
  edge [
    source 16
    target 64
  ]
  edge [
    source 16
    target 163
  ]
  edge [
    source 17
    target 1
  ]
  edge [
    source 17
    target 6
  ]
  edge [
    source 17
    target 15
  ]
  edge [
    source 17
    target 29
  ]
  edge [
    source 17
    target 54
  ]
  edge [
    source 17
    target 56
  ]
  edge [
    source 17
    target 57
  ]
  edge [
    source 17
    target 59
  ]
  edge [
    source 17
    target 60
  ]
  edge [
    source 17
    target 61
  ]
  edge [
    source 17
    target 63
  ]
  edge [
    source 17
    target 64
  ]
  edge [
    source 17
    target 158
  ]
  edge [
    source 19
    target 6
  ]
  edge [
    source 19
    target 42
  ]
  edge [
    source 19
    target 59
  ]
  edge [
    source 19
    target 119
  ]
  edge [
    source 19
    target 148
  ]
  edge [
    source 19
    target 149
  ]
  edge [
    source 19
    target 150
  ]
  edge [
    source 19
    target 151
  ]
  edge [
    source 19
    target 152
  ]
  edge [
    source 19
    target 153
  ]
  edge [
    source 19
    target 154
  ]
  edge [
    source 19
    target 155
  ]
  edge [
    source 19
    target 156
  ]
  edge [
    source 19
    target 157
  ]
  edge [
    source 19
    target 158
  ]
  edge [
    source 22
    target 1
  ]
  edge [
    source 22
    target 6
  ]
  edge [
    source 22
    target 14
  ]
  edge [
    source 22
    target 86
  ]
  edge [
    source 23
    target 6
  ]
  edge [
    source 23
    target 33
  ]
  edge [
    source 23
    target 59
  ]
  edge [
    source 23
    target 119
  ]
  edge [
    source 23
    target 148
  ]
  edge [
    source 23
    target 149
  ]
  edge [
    source 23
    target 150
  ]
  edge [
    source 23
    target 151
  ]
  edge [
    source 23
    target 152
  ]
  edge [
    source 23
    target 153
  ]
  edge [
    source 23
    target 154
  ]
  edge [
    source 23
    target 156
  ]
  edge [
    source 23
    target 158
  ]
  edge [
    source 26
    target 132
  ]
  edge [
    source 27
    target 3
  ]
  edge [
    source 27
    target 22
  ]
  edge [
    source 27
    target 23
  ]
  edge [
    source 27
    target 24
  ]
  edge [
    source 27
    target 25
  ]
  edge [
    source 27
    target 26
  ]
  edge [
    source 27
    target 27
  ]
  edge [
    source 27
    target 28
  ]
  edge [
    source 27
    target 29
  ]
  edge [
    source 27
    target 30
  ]
  edge [
    source 27
    target 31
  ]
  edge [
    source 27
    target 32
  ]
  edge [
    source 27
    target 33
  ]
  edge [
    source 28
    target 3
  ]
  edge [
    source 28
    target 22
  ]
  edge [
    source 28
    target 23
  ]
  edge [
    source 28
    target 24
  ]
  edge [
    source 28
    target 25
  ]
  edge [
    source 28
    target 26
  ]
  edge [
    source 28
    target 27
  ]
  edge [
    source 28
    target 28
  ]
  edge [
    source 28
    target 30
  ]
  edge [
    source 28
    target 33
  ]
  edge [
    source 29
    target 2
  ]
  edge [
    source 29
    target 6
  ]
  edge [
    source 29
    target 11
  ]
  edge [
    source 31
    target 4
  ]
  edge [
    source 31
    target 132
  ]
  edge [
    source 32
    target 33
  ]
  edge [
    source 36
    target 1
  ]
  edge [
    source 36
    target 33
  ]
  edge [
    source 36
    target 155
  ]
  edge [
    source 40
    target 4
  ]
  edge [
    source 40
    target 52
  ]
  edge [
    source 41
    target 1
  ]
  edge [
    source 41
    target 31
  ]
  edge [
    source 41
    target 32
  ]
  edge [
    source 41
    target 33
  ]
  edge [
    source 41
    target 34
  ]
  edge [
    source 41
    target 35
  ]
  edge [
    source 41
    target 36
  ]
  edge [
    source 41
    target 105
  ]
  edge [
    source 45
    target 4
  ]
  edge [
    source 45
    target 23
  ]
  edge [
    source 46
    target 1
  ]
  edge [
    source 46
    target 195
  ]
  edge [
    source 46
    target 196
  ]
  edge [
    source 48
    target 186
  ]
  edge [
    source 52
    target 2
  ]
  edge [
    source 52
    target 33
  ]
  edge [
    source 52
    target 186
  ]
  edge [
    source 53
    target 141
  ]
  edge [
    source 55
    target 12
  ]
  edge [
    source 55
    target 17
  ]
  edge [
    source 56
    target 2
  ]
  edge [
    source 56
    target 5
  ]
  edge [
    source 56
    target 186
  ]
  edge [
    source 57
    target 17
  ]
  edge [
    source 58
    target 29
  ]
  edge [
    source 58
    target 56
  ]
  edge [
    source 58
    target 104
  ]
  edge [
    source 58
    target 122
  ]
  edge [
    source 59
    target 1
  ]
  edge [
    source 59
    target 9
  ]
  edge [
    source 60
    target 5
  ]
  edge [
    source 60
    target 186
  ]
  edge [
    source 62
    target 1
  ]
  edge [
    source 62
    target 10
  ]
  edge [
    source 62
    target 53
  ]
  edge [
    source 62
    target 91
  ]
  edge [
    source 66
    target 8
  ]
  edge [
    source 66
    target 26
  ]
  edge [
    source 66
    target 114
  ]
  edge [
    source 68
    target 43
  ]
  edge [
    source 68
    target 73
  ]
  edge [
    source 68
    target 84
  ]
  edge [
    source 68
    target 138
  ]
  edge [
    source 70
    target 8
  ]
  edge [
    source 70
    target 16
  ]
  edge [
    source 70
    target 30
  ]
  edge [
    source 70
    target 70
  ]
  edge [
    source 74
    target 16
  ]
  edge [
    source 75
    target 21
  ]
  edge [
    source 75
    target 91
  ]
  edge [
    source 76
    target 47
  ]
  edge [
    source 76
    target 106
  ]
  edge [
    source 76
    target 113
  ]
  edge [
    source 76
    target 129
  ]
  edge [
    source 76
    target 130
  ]
  edge [
    source 76
    target 131
  ]
  edge [
    source 76
    target 132
  ]
  edge [
    source 76
    target 133
  ]
  edge [
    source 76
    target 134
  ]
  edge [
    source 76
    target 135
  ]
  edge [
    source 76
    target 136
  ]
  edge [
    source 77
    target 4
  ]
  edge [
    source 77
    target 8
  ]
  edge [
    source 77
    target 16
  ]
  edge [
    source 77
    target 30
  ]
  edge [
    source 77
    target 70
  ]
  edge [
    source 77
    target 165
  ]
  edge [
    source 79
    target 163
  ]
  edge [
    source 79
    target 164
  ]
  edge [
    source 79
    target 165
  ]
  edge [
    source 79
    target 166
  ]
  edge [
    source 79
    target 167
  ]
  edge [
    source 80
    target 3
  ]
  edge [
    source 80
    target 4
  ]
  edge [
    source 80
    target 16
  ]
  edge [
    source 80
    target 57
  ]
  edge [
    source 80
    target 142
  ]
  edge [
    source 81
    target 1
  ]
  edge [
    source 81
    target 3
  ]
  edge [
    source 81
    target 133
  ]
  edge [
    source 82
    target 3
  ]
  edge [
    source 82
    target 16
  ]
  edge [
    source 82
    target 57
  ]
  edge [
    source 83
    target 10
  ]
  edge [
    source 83
    target 163
  ]
  edge [
    source 83
    target 164
  ]
  edge [
    source 83
    target 165
  ]
  edge [
    source 83
    target 167
  ]
  edge [
    source 86
    target 17
  ]
  edge [
    source 88
    target 17
  ]
  edge [
    source 88
    target 45
  ]
  edge [
    source 90
    target 1
  ]
  edge [
    source 90
    target 53
  ]
  edge [
    source 90
    target 88
  ]
  edge [
    source 90
    target 89
  ]
  edge [
    source 90
    target 90
  ]
  edge [
    source 90
    target 91
  ]
  edge [
    source 90
    target 93
  ]
  edge [
    source 90
    target 151
  ]
  edge [
    source 91
    target 1
  ]
  edge [
    source 91
    target 53
  ]
  edge [
    source 91
    target 88
  ]
  edge [
    source 91
    target 89
  ]
  edge [
    source 91
    target 90
  ]
  edge [
    source 91
    target 91
  ]
  edge [
    source 91
    target 93
  ]
  edge [
    source 92
    target 17
  ]
  edge [
    source 92
    target 45
  ]
  edge [
    source 93
    target 1
  ]
  edge [
    source 93
    target 4
  ]
  edge [
    source 93
    target 17
  ]
  edge [
    source 93
    target 29
  ]
  edge [
    source 93
    target 30
  ]
  edge [
    source 93
    target 31
  ]
  edge [
    source 93
    target 32
  ]
  edge [
    source 93
    target 33
  ]
  edge [
    source 93
    target 34
  ]
  edge [
    source 93
    target 35
  ]
  edge [
    source 93
    target 36
  ]
  edge [
    source 93
    target 37
  ]
  edge [
    source 93
    target 38
  ]
  edge [
    source 93
    target 39
  ]
  edge [
    source 93
    target 40
  ]
  edge [
    source 93
    target 45
  ]
  edge [
    source 93
    target 94
  ]
  edge [
    source 93
    target 185
  ]
  edge [
    source 94
    target 1
  ]
  edge [
    source 94
    target 4
  ]
  edge [
    source 94
    target 17
  ]
  edge [
    source 94
    target 29
  ]
  edge [
    source 94
    target 30
  ]
  edge [
    source 94
    target 31
  ]
  edge [
    source 94
    target 32
  ]
  edge [
    source 94
    target 33
  ]
  edge [
    source 94
    target 34
  ]
  edge [
    source 94
    target 35
  ]
  edge [
    source 94
    target 36
  ]
  edge [
    source 94
    target 37
  ]
  edge [
    source 94
    target 38
  ]
  edge [
    source 94
    target 94
  ]
  edge [
    source 94
    target 185
  ]
  edge [
    source 95
    target 1
  ]
  edge [
    source 95
    target 8
  ]
  edge [
    source 96
    target 1
  ]
  edge [
    source 97
    target 51
  ]
  edge [
    source 99
    target 184
  ]
  edge [
    source 99
    target 186
  ]
  edge [
    source 100
    target 1
  ]
  edge [
    source 100
    target 4
  ]
  edge [
    source 100
    target 17
  ]
  edge [
    source 100
    target 29
  ]
  edge [
    source 100
    target 30
  ]
  edge [
    source 100
    target 31
  ]
  edge [
    source 100
    target 32
  ]
  edge [
    source 100
    target 33
  ]
  edge [
    source 100
    target 34
  ]
  edge [
    source 100
    target 35
  ]
  edge [
    source 100
    target 36
  ]
  edge [
    source 100
    target 38
  ]
  edge [
    source 100
    target 39
  ]
  edge [
    source 100
    target 40
  ]
  edge [
    source 100
    target 56
  ]
  edge [
    source 100
    target 93
  ]
  edge [
    source 100
    target 185
  ]
  edge [
    source 102
    target 1
  ]
  edge [
    source 102
    target 3
  ]
  edge [
    source 102
    target 29
  ]
  edge [
    source 102
    target 30
  ]
  edge [
    source 102
    target 31
  ]
  edge [
    source 102
    target 32
  ]
  edge [
    source 102
    target 33
  ]
  edge [
    source 102
    target 34
  ]
  edge [
    source 102
    target 35
  ]
  edge [
    source 102
    target 36
  ]
  edge [
    source 102
    target 38
  ]
  edge [
    source 102
    target 39
  ]
  edge [
    source 102
    target 185
  ]
  edge [
    source 103
    target 2
  ]
  edge [
    source 103
    target 39
  ]
  edge [
    source 103
    target 47
  ]
  edge [
    source 103
    target 100
  ]
  edge [
    source 104
    target 1
  ]
  edge [
    source 104
    target 139
  ]
  edge [
    source 105
    target 18
  ]
  edge [
    source 106
    target 4
  ]
  edge [
    source 106
    target 6
  ]
  edge [
    source 107
    target 2
  ]
  edge [
    source 107
    target 39
  ]
  edge [
    source 107
    target 47
  ]
  edge [
    source 107
    target 100
  ]
  edge [
    source 107
    target 104
  ]
  edge [
    source 108
    target 1
  ]
  edge [
    source 108
    target 3
  ]
  edge [
    source 108
    target 18
  ]
  edge [
    source 108
    target 29
  ]
  edge [
    source 108
    target 30
  ]
  edge [
    source 108
    target 31
  ]
  edge [
    source 108
    target 32
  ]
  edge [
    source 108
    target 33
  ]
  edge [
    source 108
    target 35
  ]
  edge [
    source 108
    target 36
  ]
  edge [
    source 108
    target 38
  ]
  edge [
    source 108
    target 65
  ]
  edge [
    source 108
    target 185
  ]
  edge [
    source 109
    target 1
  ]
  edge [
    source 109
    target 17
  ]
  edge [
    source 109
    target 19
  ]
  edge [
    source 109
    target 39
  ]
  edge [
    source 110
    target 4
  ]
  edge [
    source 110
    target 81
  ]
  edge [
    source 111
    target 24
  ]
  edge [
    source 113
    target 7
  ]
  edge [
    source 113
    target 14
  ]
  edge [
    source 113
    target 51
  ]
  edge [
    source 113
    target 175
  ]
  edge [
    source 114
    target 1
  ]
  edge [
    source 114
    target 87
  ]
  edge [
    source 114
    target 109
  ]
  edge [
    source 115
    target 1
  ]
  edge [
    source 115
    target 3
  ]
  edge [
    source 115
    target 18
  ]
  edge [
    source 115
    target 26
  ]
  edge [
    source 115
    target 29
  ]
  edge [
    source 115
    target 30
  ]
  edge [
    source 115
    target 32
  ]
  edge [
    source 115
    target 33
  ]
  edge [
    source 115
    target 35
  ]
  edge [
    source 115
    target 36
  ]
  edge [
    source 115
    target 38
  ]
  edge [
    source 115
    target 65
  ]
  edge [
    source 115
    target 89
  ]
  edge [
    source 115
    target 94
  ]
  edge [
    source 115
    target 168
  ]
  edge [
    source 115
    target 185
  ]
  edge [
    source 117
    target 84
  ]
  edge [
    source 121
    target 1
  ]
  edge [
    source 121
    target 15
  ]
  edge [
    source 121
    target 48
  ]
  edge [
    source 122
    target 29
  ]
  edge [
    source 124
    target 94
  ]
  edge [
    source 127
    target 66
  ]
  edge [
    source 128
    target 83
  ]
  edge [
    source 128
    target 84
  ]
  edge [
    source 128
    target 85
  ]
  edge [
    source 128
    target 86
  ]
  edge [
    source 129
    target 48
  ]
  edge [
    source 129
    target 49
  ]
  edge [
    source 129
    target 50
  ]
  edge [
    source 129
    target 51
  ]
  edge [
    source 129
    target 52
  ]
  edge [
    source 129
    target 53
  ]
  edge [
    source 129
    target 94
  ]
  edge [
    source 130
    target 86
  ]
  edge [
    source 132
    target 115
  ]
  edge [
    source 133
    target 2
  ]
  edge [
    source 133
    target 8
  ]
  edge [
    source 133
    target 19
  ]
  edge [
    source 133
    target 49
  ]
  edge [
    source 133
    target 50
  ]
  edge [
    source 133
    target 51
  ]
  edge [
    source 133
    target 52
  ]
  edge [
    source 133
    target 53
  ]
  edge [
    source 133
    target 94
  ]
  edge [
    source 136
    target 12
  ]
  edge [
    source 136
    target 42
  ]
  edge [
    source 136
    target 43
  ]
  edge [
    source 136
    target 44
  ]
  edge [
    source 136
    target 45
  ]
  edge [
    source 136
    target 46
  ]
  edge [
    source 136
    target 47
  ]
  edge [
    source 136
    target 48
  ]
  edge [
    source 136
    target 49
  ]
  edge [
    source 136
    target 50
  ]
  edge [
    source 136
    target 51
  ]
  edge [
    source 136
    target 52
  ]
  edge [
    source 136
    target 191
  ]
  edge [
    source 139
    target 2
  ]
  edge [
    source 140
    target 1
  ]
  edge [
    source 140
    target 4
  ]
  edge [
    source 142
    target 6
  ]
  edge [
    source 142
    target 20
  ]
  edge [
    source 143
    target 12
  ]
  edge [
    source 144
    target 6
  ]
  edge [
    source 144
    target 20
  ]
  edge [
    source 146
    target 1
  ]
  edge [
    source 146
    target 4
  ]
  edge [
    source 146
    target 8
  ]
  edge [
    source 146
    target 21
  ]
  edge [
    source 146
    target 42
  ]
  edge [
    source 148
    target 2
  ]
  edge [
    source 148
    target 56
  ]
  edge [
    source 148
    target 140
  ]
  edge [
    source 151
    target 1
  ]
  edge [
    source 151
    target 157
  ]
  edge [
    source 153
    target 3
  ]
  edge [
    source 154
    target 61
  ]
  edge [
    source 155
    target 1
  ]
  edge [
    source 155
    target 157
  ]
  edge [
    source 156
    target 91
  ]
  edge [
    source 157
    target 1
  ]
  edge [
    source 158
    target 1
  ]
  edge [
    source 158
    target 22
  ]
  edge [
    source 158
    target 157
  ]
  edge [
    source 158
    target 181
  ]
  edge [
    source 159
    target 3
  ]
  edge [
    source 160
    target 1
  ]
  edge [
    source 161
    target 2
  ]
  edge [
    source 161
    target 59
  ]
  edge [
    source 161
    target 68
  ]
  edge [
    source 161
    target 90
  ]
  edge [
    source 163
    target 3
  ]
  edge [
    source 163
    target 45
  ]
  edge [
    source 163
    target 68
  ]
  edge [
    source 165
    target 2
  ]
  edge [
    source 165
    target 34
  ]
  edge [
    source 165
    target 59
  ]
  edge [
    source 165
    target 68
  ]
  edge [
    source 165
    target 90
  ]
  edge [
    source 165
    target 127
  ]
  edge [
    source 165
    target 173
  ]
  edge [
    source 167
    target 2
  ]
  edge [
    source 167
    target 19
  ]
  edge [
    source 167
    target 58
  ]
  edge [
    source 167
    target 185
  ]
  edge [
    source 168
    target 8
  ]
  edge [
    source 168
    target 25
  ]
  edge [
    source 168
    target 35
  ]
  edge [
    source 168
    target 82
  ]
  edge [
    source 168
    target 133
  ]
  edge [
    source 170
    target 36
  ]
  edge [
    source 171
    target 1
  ]
  edge [
    source 171
    target 13
  ]
  edge [
    source 171
    target 36
  ]
  edge [
    source 171
    target 121
  ]
  edge [
    source 171
    target 174
  ]
  edge [
    source 174
    target 47
  ]
  edge [
    source 176
    target 9
  ]
  edge [
    source 176
    target 139
  ]
  edge [
    source 177
    target 38
  ]
  edge [
    source 179
    target 22
  ]
  edge [
    source 179
    target 77
  ]
  edge [
    source 180
    target 2
  ]
  edge [
    source 180
    target 8
  ]
  edge [
    source 180
    target 41
  ]
  edge [
    source 180
    target 47
  ]
  edge [
    source 180
    target 167
  ]
  edge [
    source 181
    target 92
  ]
  edge [
    source 183
    target 90
  ]
  edge [
    source 185
    target 147
  ]
  edge [
    source 186
    target 22
  ]
  edge [
    source 187
    target 8
  ]
  edge [
    source 187
    target 20
  ]
  edge [
    source 187
    target 47
  ]
  edge [
    source 187
    target 50
  ]
  edge [
    source 187
    target 80
  ]
  edge [
    source 188
    target 9
  ]
  edge [
    source 188
    target 36
  ]
  edge [
    source 188
    target 60
  ]
  edge [
    source 188
    target 140
  ]
  edge [
    source 190
    target 1
  ]
  edge [
    source 190
    target 2
  ]
  edge [
    source 190
    target 59
  ]
  edge [
    source 192
    target 9
  ]
  edge [
    source 193
    target 2
  ]
  edge [
    source 193
    target 4
  ]
  edge [
    source 193
    target 5
  ]
  edge [
    source 193
    target 38
  ]
  edge [
    source 193
    target 59
  ]
  edge [
    source 194
    target 9
  ]
  edge [
    source 194
    target 10
  ]
  edge [
    source 194
    target 36
  ]
  edge [
    source 194
    target 40
  ]
  edge [
    source 194
    target 60
  ]
  edge [
    source 194
    target 140
  ]
  edge [
    source 195
    target 183
  ]
  edge [
    source 196
    target 2
  ]
  edge [
    source 196
    target 11
  ]
  edge [
    source 196
    target 103
  ]
  edge [
    source 1
    target 4
  ]
  edge [
    source 1
    target 58
  ]
  edge [
    source 1
    target 69
  ]
  edge [
    source 1
    target 102
  ]
  edge [
    source 2
    target 1
  ]
  edge [
    source 2
    target 7
  ]
  edge [
    source 2
    target 157
  ]
  edge [
    source 2
    target 158
  ]
  edge [
    source 2
    target 159
  ]
  edge [
    source 2
    target 160
  ]
  edge [
    source 3
    target 2
  ]
  edge [
    source 3
    target 4
  ]
  edge [
    source 3
    target 58
  ]
  edge [
    source 3
    target 69
  ]
  edge [
    source 3
    target 102
  ]
  edge [
    source 5
    target 1
  ]
  edge [
    source 5
    target 6
  ]
  edge [
    source 5
    target 28
  ]
  edge [
    source 5
    target 35
  ]
  edge [
    source 7
    target 58
  ]
]
